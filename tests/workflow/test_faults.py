"""What a user gets wrong: one line says it, the last one and alone; and targets by their names."""

import json
import re

import pytest
import yaml

pytestmark = pytest.mark.workflow


def test_a_bad_setting_is_one_line(project):
    run = project.configure(clients=0).call("--dry-run")
    assert run.code == 1
    assert run.output.splitlines()[-1] == (
        "fedstage: tiny/default, method fedavg: clients = 0: must be greater than or equal to 1"
    )
    assert "common.smk" not in run.output


def test_numbers_of_a_part_go_into_a_file(project):
    """Snakemake makes text of all that stands within the braces of --config."""
    project.configure(methods=["fedavg"])
    execution = {"granularity": "segment", "segment_rounds": 1}
    run = project.call("--dry-run", "--config", f"execution={json.dumps(execution)}")
    assert run.code == 1
    line = run.output.splitlines()[-1]
    assert line.startswith("fedstage: config.yaml: execution.segment_rounds = '1': must be a valid")
    (project.path / "own.yaml").write_text(yaml.safe_dump({"execution": execution}))
    assert {"segment_0001_0001_groups_0", "segment_0002_0002_groups_0"} <= set(
        project.plan("--configfile", str(project.path / "own.yaml")).jobs
    )


WEIGHTS = {"file": "b.pth", "sha256": "0123456789abcdef"}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"numerics": {"device": "cuda"}}, "numerics.device = 'cuda': this machine has 0 usable"),
        (
            {
                "data": {"cifar10": {"held_out": 9}},
                "model": {"efficientnet_b0": {"weights": WEIGHTS}},
            },
            "model.weights.file = 'b.pth': no such file below ",
        ),
    ],
)
def test_what_this_machine_lacks_is_told_before_any_job(project, changes, told):
    project.configure(methods=["fedavg"], **changes)
    run = project.call("--dry-run", CUDA_VISIBLE_DEVICES="", FEDSTAGE_DATA=str(project.path))
    assert run.code == 1
    assert run.output.splitlines()[-1].startswith(f"fedstage: {told}")


#: Python runs it at the start of a process, in which these packages are then not installed.
WITHOUT = "import sys; sys.modules.update(torchao=None, transformers=None)"


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {"training": "alone", "quantisation": "int8"},
            "quantisation = int8: needs the package torchao, which is not installed; install the "
            "extra int8: uv sync --extra int8, or pip install 'fedstage[int8]'",
        ),
        (
            {"data": "ag_news", "model": "distilbert"},
            "model = distilbert: needs the package transformers, which is not installed; install "
            "the extra text: uv sync --extra text, or pip install 'fedstage[text]'",
        ),
    ],
)
def test_a_package_that_is_not_installed_is_told_before_any_job(project, tmp_path, changes, told):
    python = tmp_path / "python"
    python.mkdir()
    (python / "sitecustomize.py").write_text(WITHOUT)
    project.configure(methods=["local_only"], **changes)
    run = project.call("--dry-run", PYTHONPATH=str(python))
    assert run.code == 1
    assert run.output.splitlines()[-1] == f"fedstage: {told}"


def test_the_fault_of_a_job_stands_last_and_alone(project):
    partition = {"dirichlet": {"alpha": 1e-6, "min_samples": 300, "max_draws": 1}}
    run = project.configure(methods=["fedavg"], partition=partition).call(short=True)
    assert run.code == 1
    *_, done, blank, failed, line = run.output.splitlines()
    assert re.fullmatch(r"\d+ of \d+ jobs done, 1 failed, in 0:\d\d:\d\d", done)
    assert blank == ""
    assert re.fullmatch(r"partition failed: results/logs/partition/\S+\.json", failed)
    assert run.output.count("fedstage partition:") == 1
    assert "Error" not in run.output
    assert line.startswith("fedstage partition: partition.max_draws = 1: no Dirichlet draw gave")


def test_bad_data_is_told_last_and_stops_only_what_depends_on_it(project):
    config = yaml.safe_load(
        (project.configure(methods=["fedavg"]).path / "config.yaml").read_text()
    )
    experiment = config["experiments"]["tiny"]
    experiment["grid"]["data"] = {"good": "digits", "bad": {"parquet": {"folder": "flowers"}}}
    experiment["table"] = {"rows": ["data"], "columns": ["method"]}
    (project.path / "config.yaml").write_text(yaml.safe_dump(config))
    (project.path / "flowers").mkdir()
    for part in ("train", "test"):
        (project.path / f"flowers/{part}.parquet").write_text("no table")
    run = project.call(cores=1, FEDSTAGE_DATA=str(project.path))
    assert run.code == 1
    lines = run.output.splitlines()
    assert lines[-1].startswith("fedstage dataset: ")
    failed = "tiny/default: no table, as 1 of 2 runs failed: method = fedavg, data = bad"
    assert f"{failed}; the others make one without these in the grid" in lines
    assert run.trained()


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("tiny/mini", "fedstage: tiny/mini: no such scale; use one of tiny/default"),
        (
            "results/tables/tyni/default.md",
            "fedstage: tyni/default: no such experiment; did you mean 'tiny/default'?",
        ),
    ],
)
def test_an_unknown_target_is_told_with_what_was_meant(project, target, told):
    run = project.call("--dry-run", target)
    assert run.code == 1
    assert run.output.splitlines()[-1] == told
