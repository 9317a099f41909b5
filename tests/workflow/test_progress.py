"""What a run says while it goes on: losses of rounds, accuracies on validation samples."""

import re

import pytest

from fedstage.storage.files import load_json

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
    (record,) = project.files("results/logs/evaluation/**/*.json")
    _, said = load_json(project.path / record)["notices"]
    assert "accuracy on validation samples" in said


def test_nothing_is_said_of_test_samples_before_the_end(finished):
    for record in finished.files("results/logs/evaluation/**/*.json"):
        assert "notices" not in load_json(finished.path / record)
