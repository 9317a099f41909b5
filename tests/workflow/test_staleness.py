"""Participants that start from older models: the same files in every granularity, and no others."""

import pytest

pytestmark = pytest.mark.workflow

SEGMENT = {"granularity": "segment", "segment_rounds": 2}
STRAGGLERS = {"cyclic": {"delays": [0, 1, 2]}}
RANDOM = {"random": {"probabilities": [0.4, 0.3, 0.3]}}
METHODS = ["feddf", "fedsdd"]


def results(project):
    """Results without what only segments make: students of the last round, and round states."""
    unread = ("/state.", "round_0005/group_1/distilled")
    found = project.results().items()
    return {path: content for path, content in found if not any(one in path for one in unread)}


def made_in_segments(project, folder, **changes):
    other = type(project)(folder)
    other.path.mkdir()
    other.configure(execution=SEGMENT, **changes).make()
    return other


@pytest.mark.parametrize(
    ("methods", "staleness"),
    [(["feddf"], STRAGGLERS), (["fedsdd"], RANDOM), (METHODS, "never")],
    ids=["feddf", "fedsdd", "never"],
)
def test_segments_of_stale_participants_give_the_same_bytes(project, tmp_path, methods, staleness):
    settings = {"methods": methods, "staleness": staleness, "rounds": 5}
    project.configure(**settings).make()
    expected = results(project)
    found = results(made_in_segments(project, tmp_path / "segments", **settings))
    assert {path: found.get(path) for path in expected} == expected
