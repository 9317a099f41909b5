"""What an edit of the package makes anew, and what it does not."""

import shutil
import subprocess
import time

import pytest
import yaml

from fedstage.plan.syntax import PACKAGE

from .conftest import environment
from .test_verify import name, verify

pytestmark = pytest.mark.workflow

#: An edit of aggregation that changes no byte.
SAME_BYTES = ("stages/aggregation.py", 'int(info["classes"])', '0 + int(info["classes"])')


@pytest.fixture
def edit(tmp_path, monkeypatch):
    """A function that edits a copy of the package, which snakemake then runs."""
    package = tmp_path / "src" / "fedstage"
    unfinished = shutil.ignore_patterns("*.pyc.*")
    shutil.copytree(PACKAGE, package, ignore=unfinished)  # with its bytecode
    monkeypatch.setenv("PYTHONPATH", str(package.parent))

    def change(file, old, new):
        text = (package / file).read_text()
        assert old in text
        (package / file).write_text(text.replace(old, new))

    return change


@pytest.fixture
def edited(copy, edit):
    """A function that edits a copy of the package, from which the finished run is then planned."""

    def change(*file_old_new):
        edit(*file_old_new)
        return copy

    return change


def test_comments_docstrings_and_what_no_recipe_names_make_nothing_anew(edited):
    edited("training/loop.py", "    model.train()\n", "    # All of it.\n    model.train()\n")
    edited("stages/aggregation.py", "Average the updates", "Take the mean of the updates")
    edited(
        "settings/partitions.py",
        "mask: bool = True\n",
        "mask: bool = True\n    more: int = 0\n",
    )
    edited(
        "algorithm/local_trainers/fedprox.py",
        "proximal(start, self.settings.mu)",
        "proximal(start, 2 * self.settings.mu)",
    )
    project = edited("models/architectures/resnet.py", "class Block", "LAYERS = 3\n\n\nclass Block")
    assert project.plan().jobs == {}


def test_the_distillation_makes_students_anew_and_what_reads_them(edited, finished):
    project = edited("algorithm/global_trainers/distillation.py", "tau**2", "2 * tau**2")
    plan = project.plan()
    student = finished.recipe(method="fedavg-K2-designated").name
    # The group that is not taught, and round 1 of the one that is, are another recipe's.
    assert plan.trained() == [(2, 0, student)]
    assert plan.jobs == {
        "distillation": 2, "local_training": 1, "aggregation": 1, "logits": 1, "evaluation": 1,
        "scores": 1, "table": 1, "figure": 1, "all": 1,
    }  # fmt: skip
    project.make()
    assert project.make().jobs == {}


def test_what_follows_from_a_recipe_makes_anew_what_runs_it_and_what_reads_that(project, edit):
    project.configure(methods=["fedavg", "feddf_buffered"]).make()
    what = "Return a round's settings, without the buffer"
    edit("protocol/server.py", what, "Return settings without the buffer")
    assert project.plan().jobs == {}
    edit("protocol/server.py", "round_ > server.buffer.after", "round_ >= server.buffer.after")
    plan = project.plan()
    taught = project.recipe(method="fedavg-basic").name
    # Round 1 trains from initial models, and so belongs to the recipe that is not taught.
    assert plan.trained() == [(2, 0, taught), (2, 1, taught)]
    assert plan.jobs == {
        "distillation": 2, "local_training": 2, "aggregation": 1, "logits": 1, "evaluation": 1,
        "scores": 1, "table": 1, "all": 1,
    }  # fmt: skip


@pytest.mark.parametrize("granularity", ["round", "segment"])
def test_a_run_may_go_on_in_another_granularity(copy, granularity):
    path = copy.path / "config.yaml"
    config = yaml.safe_load(path.read_text()) | {"execution": {"granularity": granularity}}
    path.write_text(yaml.safe_dump(config))
    assert copy.plan().jobs == {}


def test_an_edit_that_changes_no_byte_computes_its_own_stage_anew_alone(copy, edit):
    """What follows is listed, but keeps its outputs; of an edit taken back there is nothing."""
    other = SAME_BYTES
    edit(*other)
    plan = copy.plan()
    assert "fedstage/stages/aggregation.py has changed, which aggregation reaches" in plan.output
    assert {round_ for round_, _, _ in plan.trained()} == {2}  # the first reads no average
    assert plan.jobs["aggregation"] > 0 < plan.jobs["table"]
    edit(other[0], other[2], other[1])
    assert copy.plan().jobs == {}

    edit(*other)
    before = copy.results()
    logs, times = copy.path / "results/logs", {}
    for path in logs.rglob("*.json"):
        times[path] = path.stat().st_mtime_ns
    copy.make()
    anew = {
        path.relative_to(logs).parts[0] for path in times if path.stat().st_mtime_ns > times[path]
    }
    assert anew == {"aggregation"}
    assert copy.results() == before
    assert verify(copy)[:2] == (0, {})
    assert copy.plan().jobs == {}


def test_files_of_another_source_are_found_without_notes_of_snakemake(copy, edit):
    edit(*SAME_BYTES)
    averages = {name(copy, path) for path in copy.path.glob("results/training/*/*/*/aggregated.*")}
    code, wrong, cure = verify(copy)
    assert code == 1
    assert averages
    assert averages <= wrong.keys()
    assert all(reason.startswith("was made by another source") for reason in wrong.values())
    assert f"{len(wrong)} of " in cure
    copy.make("--force", *wrong)
    assert verify(copy)[:2] == (0, {})


@pytest.mark.parametrize("executor", ["fedstage", "local"])
def test_source_that_is_edited_after_the_plan_is_not_used(project, edit, executor):
    project.configure(methods=["fedavg"], rounds=1, participants=1)
    table = ("results/documents.py", "def write_tables(", "OTHER = 1\n\n\ndef write_tables(")
    running = subprocess.Popen(
        project.command("--keep-going", "--executor", executor),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment(),
    )  # fmt: skip
    while not project.files("results/data/*/info.json"):
        assert running.poll() is None
        time.sleep(0.05)
    edit(*table)
    output, _ = running.communicate(timeout=1800)
    assert running.returncode != 0
    assert "documents.py: the source changed during the run" in output
    assert project.files("results/training/*/metrics/*/*.parquet")  # which do not use it
    assert not project.files("results/tables/*/*.md")
    edit(table[0], table[2], table[1])
    project.make()
