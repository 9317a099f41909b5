"""Files between those that are there: nothing needs them, so they are named to be made again."""

import subprocess
import sys

import pytest
import yaml

pytestmark = pytest.mark.workflow


def missing(project, *arguments):
    """Return the files that are gone, of the command as a user gives it."""
    snakefile = project.command()[4]
    command = [sys.executable, "-m", "fedstage.execution.cli", "missing", *arguments]
    done = subprocess.run(
        [*command, "--snakefile", snakefile], cwd=project.path, check=False, capture_output=True,
        text=True,
    )  # fmt: skip
    assert not done.returncode, done.stderr
    return done.stdout.split()


def test_files_that_are_gone_are_named_and_made_again(copy):
    assert missing(copy) == []  # a state that was temporary is gone, and not missing
    before = copy.results()
    recipe = copy.recipe()
    gone = [
        *(copy.path / "results/partitions").glob("*/clients.parquet"),
        *recipe.glob("round_0001/group_0/aggregated.safetensors"),
        min(recipe.glob("round_0002/**/participant_*.safetensors")),
    ]
    for path in gone:
        path.unlink()
    assert "Nothing to be done" in copy.plan().output
    names = [str(path.relative_to(copy.path)) for path in gone]
    assert sorted(missing(copy)) == sorted(names)
    copy.make(*names)
    assert copy.results() == before
    assert missing(copy) == []


def test_files_of_experiments_that_are_no_targets_are_missing_too(copy):
    config = yaml.safe_load((copy.path / "config.yaml").read_text())
    tiny = config["experiments"]["tiny"]
    config["experiments"]["other"] = tiny | {"base": tiny["base"] | {"seed": 1}}
    (copy.path / "config.yaml").write_text(yaml.safe_dump(config | {"targets": ["other"]}))
    model = min(copy.recipe().glob("round_0001/group_0/aggregated.safetensors"))
    model.unlink()
    assert missing(copy) == [str(model.relative_to(copy.path))]


@pytest.mark.parametrize("keep", ["models", "needed"])
def test_files_that_are_not_kept_are_not_missing(project, keep):
    execution = {"granularity": "segment", "segment_rounds": 2}
    project.configure(keep=keep, execution=execution, methods=["fedavg"], rounds=3).make()
    assert missing(project) == []
    (model,) = project.recipe().glob("round_0003/group_0/aggregated.safetensors")
    model.unlink()
    assert missing(project) == [str(model.relative_to(project.path))]
