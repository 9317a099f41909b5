"""Participants that start from older models: the same files in every granularity, and no others."""

import pytest
from safetensors.torch import load_file

from fedstage.storage.tables import load_table

pytestmark = pytest.mark.workflow

ROUND = {"granularity": "round"}
SEGMENT = {"granularity": "segment", "segment_rounds": 2}
STRAGGLERS = {"cyclic": {"delays": [0, 1, 2]}}
RANDOM = {"random": {"probabilities": [0.4, 0.3, 0.3]}}
METHODS = ["feddf", "fedsdd"]


def results(project):
    """Results without what only segments make: students of the last round, and round states."""
    unread = ("/state.", "round_0005/group_1/distilled")
    found = project.results().items()
    return {path: content for path, content in found if not any(one in path for one in unread)}


@pytest.mark.parametrize(
    ("methods", "staleness"),
    [(["feddf"], STRAGGLERS), (["fedsdd"], RANDOM), (METHODS, "never")],
    ids=["feddf", "fedsdd", "never"],
)
def test_segments_of_stale_participants_give_the_same_bytes(
    project, new_project, methods, staleness
):
    settings = {"methods": methods, "staleness": staleness, "rounds": 5}
    project.configure(**settings).make()
    other = new_project().configure(execution=SEGMENT, **settings)
    other.make()
    expected, found = results(project), results(other)
    assert {path: found.get(path) for path in expected} == expected


def test_withdrawing_trains_nothing_and_leaves_the_models_as_they_were(project, new_project):
    """In even rounds everybody would be late, so that nobody comes."""
    settings = {"methods": METHODS, "rounds": 5, "withdraw_stale": True}
    settings["staleness"] = {"cyclic": {"delays": [0, 1]}}
    run = project.configure(**settings).make()
    assert run.jobs["distillation"] == 2 * 3
    for table in project.files("results/training/*/round_*/group_*/participants.parquet"):
        even = int(table.parts[3].removeprefix("round_")) % 2 == 0
        participants = 1 if "-K2-" in table.parts[2] else 2
        assert load_table(project.path / table).num_rows == (0 if even else participants)
    folder = project.recipe(method="fedavg-basic")
    before, after = (
        load_file(folder / name)
        for name in ("round_0001/group_0/distilled.safetensors",
                     "round_0002/group_0/aggregated.safetensors")
    )  # fmt: skip
    assert all(before[name].equal(after[name]) for name in before)
    expected = results(project)
    for execution in (ROUND, SEGMENT):
        other = new_project().configure(execution=execution, **settings)
        other.make()
        found = results(other)
        assert {path: found.get(path) for path in expected} == expected
