"""Secure aggregation in real runs: what is averaged, what is kept, and who sees what."""

import re

import pytest

pytestmark = pytest.mark.workflow

SEGMENT = {"granularity": "segment", "segment_rounds": 2}
SECURE = {"threshold": 3, "clip": 0.5, "bits": 24, "most_samples": 1000}
#: Of 4 participants in 3 rounds some drop out before each step, and never more than one a round.
DROPPED = {"share": 0.1, "masked_input": 0.1, "unmask": 0.1}


def configured(project, methods=("fedavg", "scaffold"), execution=None, rounds=3, **secure):
    settings = {"clients": 6, "participants": 4, "rounds": rounds}
    aggregation = {"secure": SECURE | secure} if secure is not None else {}
    execution = {"execution": execution} if execution else {}
    return project.configure(
        methods=list(methods), aggregation=aggregation, **settings, **execution
    )


@pytest.fixture(scope="module")
def by_participant(new_project):
    project = configured(new_project(), dropped=DROPPED)
    project.make()
    return project


def test_segments_give_the_same_bytes(by_participant, new_project):
    other = configured(new_project(), execution=SEGMENT, dropped=DROPPED)
    assert other.make().jobs["masked_input"] == 0
    # Each segment keeps the states that the next one starts from.
    unread = ("round_0002/group_0/state.", "round_0002/group_0/secure/client_states.")
    found = {
        path: found
        for path, found in other.results().items()
        if not re.search("|".join(unread), path)
    }
    assert found == by_participant.results()


def test_no_secret_stays(by_participant):
    assert by_participant.files("results/training/*/*/*/secure/*_shares.*")
    assert not by_participant.files("results/training/*/*/*/secure/*_private.*")
