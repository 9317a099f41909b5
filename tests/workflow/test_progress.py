"""What a run says while it goes on: losses of rounds, accuracies on validation samples."""

import re

import pytest

from fedstage.execution.snakemake_log import latest_log, read_progress

pytestmark = pytest.mark.workflow

LOSS = r"fedstage (?:segment|aggregation): round (\d+), group 0: training loss \d+\.\d{4}, 2 part"
ACCURACY = r"round (\d+): accuracy on validation samples \d+\.\d\d %"


@pytest.fixture(scope="module")
def run(new_project):
    """A run by segments, whose scores are on validation samples."""
    project = new_project().configure(
        methods=["fedavg"],
        role="validation",
        execution={"granularity": "segment"},
    )
    return project, project.make()


def test_rounds_say_their_loss_and_evaluations_their_accuracy_on_validation(run):
    project, made = run
    assert sorted(re.findall(LOSS, made.output)) == ["1", "2"]
    assert re.findall(ACCURACY, made.output) == ["1", "2"]
    (log,) = project.files("results/logs/evaluation/**/*.log")
    assert "accuracy on validation samples" in (project.path / log).read_text()


def test_nothing_is_said_of_test_samples_before_the_end(finished):
    for log in finished.files("results/logs/evaluation/**/*.log"):
        assert "accuracy" not in (finished.path / log).read_text()


def test_the_log_has_what_watch_and_snakesee_read(run):
    project, made = run
    text = latest_log(project.path).read_text()
    progress = read_progress(text.splitlines())
    assert progress.ended
    assert progress.planned == dict(made.jobs)
    assert progress.left == progress.running == {}
    assert re.search(rf"\n{progress.done} of {progress.done} steps \(100%\) done\n", text)
    assert any((project.path / ".snakemake/metadata").iterdir())
