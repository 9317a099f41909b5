"""What an edit of the package makes anew, and what it does not."""

import shutil

import pytest
import yaml

from fedstage.plan.syntax import PACKAGE

pytestmark = pytest.mark.workflow


@pytest.fixture
def edit(tmp_path, monkeypatch):
    """A function that edits a copy of the package, which snakemake then runs."""
    package = tmp_path / "src" / "fedstage"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PACKAGE, package, ignore=ignored)
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
        "alpha=self.settings.mu",
        "alpha=2 * self.settings.mu",
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
        "run_scores": 1, "tables": 1, "figures": 1, "all": 1,
    }  # fmt: skip
    project.make()
    assert project.make().jobs == {}


def test_a_local_trainer_makes_its_own_recipes_anew(edited, finished):
    file = "algorithm/local_trainers/scaffold.py"
    plan = edited(
        file, "* update.payload[name] / clients", "* update.payload[name] / (1 * clients)"
    ).plan()
    recipe = finished.recipe(method="scaffold").name
    assert set(plan.trained()) == {
        (t, participant, recipe) for t in (1, 2) for participant in (0, 1)
    }
    assert plan.jobs["evaluation"] == 1
    assert plan.jobs["partition"] == plan.jobs["dataset"] == plan.jobs["distillation"] == 0


def test_what_settings_compute_makes_anew_what_runs_it_and_what_follows(project, edit):
    project.configure(methods=["fedavg", "feddf_buffered"]).make()
    what = "Return the settings of a round: without the buffer in rounds"
    edit("settings/server.py", what, "Return settings without the buffer")
    assert project.plan().jobs == {}
    edit("settings/server.py", "round_ > server.buffer.after", "round_ >= server.buffer.after")
    plan = project.plan()
    taught = project.recipe(method="fedavg-basic").name
    # Round 1 trains from initial models, and so belongs to the recipe that is not taught.
    assert plan.trained() == [(2, 0, taught), (2, 1, taught)]
    assert plan.jobs == {
        "distillation": 2, "local_training": 2, "aggregation": 1, "logits": 1, "evaluation": 1,
        "run_scores": 1, "tables": 1, "figures": 1, "all": 1,
    }  # fmt: skip


def test_tables_make_no_training_anew(edited):
    plan = edited("results/tables/markdown.py", "def render(", "DIGITS = 2\n\n\ndef render(").plan()
    assert plan.jobs == {"tables": 1, "all": 1}


@pytest.mark.parametrize("granularity", ["round", "segment"])
def test_a_run_may_go_on_in_another_granularity(copy, granularity):
    path = copy.path / "config.yaml"
    config = yaml.safe_load(path.read_text()) | {"execution": {"granularity": granularity}}
    path.write_text(yaml.safe_dump(config))
    triggers = ["--rerun-triggers", "mtime", "params"]
    assert copy.plan(*triggers).jobs == {}
