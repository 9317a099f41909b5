"""The workflow from `workflow/Snakefile`, as a module of another one, and a plan in short."""

import shutil
from pathlib import Path

import pytest

pytestmark = pytest.mark.workflow

SHIM = Path(__file__).parents[2] / "workflow/Snakefile"

OUTER = """
configfile: "config.yaml"

module fedstage:
    snakefile: {snakefile!r}
    config: config

use rule * from fedstage as fedstage_*

rule best:
    input:
        "results/tables/tiny/default.csv",
    output:
        "best.txt",
    default_target: True
    shell:
        "tail -n 1 {{input}} > {{output}}"
"""


def test_the_file_in_workflow_makes_the_configured_targets(project):
    project.configure(methods=["fedavg"])
    plan = project.plan("--snakefile", str(SHIM))
    assert plan.jobs == project.plan().jobs
    assert plan.jobs["table"] == 1


def test_the_folder_above_is_the_place_to_run_it(project):
    run = project.call("--dry-run", "--directory", str(SHIM.parent))
    assert run.code == 1
    assert run.output.splitlines()[-1] == (
        "fedstage: workflow/ has no config.yaml; run snakemake in the folder above"
    )


def test_another_workflow_uses_this_one_as_a_module(project):
    project.configure(methods=["fedavg"])
    outer = project.path / "Snakefile"
    outer.write_text(OUTER.format(snakefile=str(SHIM)))
    output = project.make("--snakefile", str(outer)).output
    assert "fedstage_local_training" in output
    assert (project.path / "best.txt").read_text().startswith("fedavg,")
    shutil.rmtree(project.path / "results/tables")
    again = project.plan("--snakefile", str(outer), "results/tables/tiny/default.csv")
    assert set(again.jobs) == {"fedstage_scores", "fedstage_table"}


DEPLOYED = """
configfile: "config/config.yaml"

module deployed:
    snakefile: {snakefile!r}
    config: config

use rule * from deployed
"""


def test_a_workflow_as_snakedeploy_writes_it_makes_the_targets_of_its_own_file(project):
    project.configure(methods=["fedavg"])
    outer = project.path / "workflow/Snakefile"
    outer.parent.mkdir()
    outer.write_text(DEPLOYED.format(snakefile=str(SHIM)))
    config = project.path / "config/config.yaml"
    config.parent.mkdir()
    (project.path / "config.yaml").rename(config)
    assert project.plan("--snakefile", str(outer)).jobs["table"] == 1
    config.write_text("{}")
    refused = project.call("--snakefile", str(outer), "--dry-run")
    assert refused.code != 0
    assert "fedstage: config.yaml: targets: missing, a value is required" in refused.output
    config.write_text("")  # as snakedeploy leaves it
    refused = project.call("--snakefile", str(outer), "--dry-run")
    assert refused.code != 0
    assert "Config file must be given as JSON or YAML with keys at top level" in refused.output


def test_a_plan_in_short_says_how_many_jobs_of_a_rule_there_are_once(copy):
    copy.configure(rounds=3)
    plan = copy.make("--dry-run", short=True)
    assert plan.jobs["local_training"] > 1
    assert plan.output.count("Job stats:") == 1
    assert "Reason" not in plan.output
    assert len(plan.output.splitlines()) < 40 < len(copy.plan().output.splitlines())
    assert "snakemake -n -p lists every job" in plan.output
    assert "Reasons:" in copy.plan().output
    quiet = copy.make("--dry-run", "--quiet", "rules", short=True)
    assert "lists every job" not in quiet.output
