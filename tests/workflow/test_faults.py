"""What a user gets wrong: one line says it, the last one and alone; and targets by their names."""

from collections import Counter

import pytest

pytestmark = pytest.mark.workflow


def last_line(run):
    *_, blank, line = ["", *run.output.splitlines()]
    return blank, line


def test_a_bad_setting_is_one_line(project):
    run = project.configure(clients=0).call("--dry-run")
    assert run.code == 1
    assert run.output.splitlines()[-1] == (
        "fedstage: tiny/default, method fedavg: clients = 0: must be greater than or equal to 1"
    )
    assert "common.smk" not in run.output


def test_the_fault_of_a_job_stands_last_and_alone(project):
    client = {"epochs": 1, "batch_size": 32, "learning_rate": 1e30}
    run = project.configure(methods=["fedavg"], client=client).call()
    assert run.code == 1
    blank, line = last_line(run)
    assert blank == ""
    assert line.startswith("fedstage local_training: client ")
    assert "lower client.learning_rate" in line
    assert "At least one job did not complete successfully." in run.output.split(line)[-2]


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("tyny", "fedstage: tyny: no experiment, rule or file of this name; did you mean 'tiny'?"),
        ("tiny/mini", "fedstage: tiny/mini: no such scale; use one of tiny/default"),
        (
            "results/tables/tyni/default.md",
            "fedstage: tyni/default: no such experiment and scale; did you mean 'tiny/default'?",
        ),
    ],
)
def test_an_unknown_target_is_told_with_what_was_meant(project, target, told):
    run = project.call("--dry-run", target)
    assert run.code == 1
    assert run.output.splitlines()[-1] == told


@pytest.mark.parametrize("target", ["tiny", "tiny/default"])
def test_an_experiment_is_a_target_by_its_name(project, target):
    project.configure(methods=["fedavg"])
    every, one = project.plan(), project.plan(target)
    assert one.jobs - Counter({target: 1}) == every.jobs - Counter({"all": 1})
    assert one.jobs[target] == 1
