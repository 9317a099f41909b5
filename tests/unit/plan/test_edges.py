"""What the equation of a file reads; tests of `why` compare it with what jobs have read."""

import pytest

from fedstage.plan import artefacts
from fedstage.plan.edges import find_origin, made_in_segment, read_by
from fedstage.plan.sharing import undistilled
from fedstage.settings.lines import Line

BASE = {
    "data": "digits",
    "clients": 6,
    "partition": "iid",
    "participants": 4,
    "model": {"cnn_small": {"norm": "batch"}},
    "global_models": 2,
    "client": {"epochs": 1, "batch_size": 8, "learning_rate": 0.1},
    "seed": 0,
}
SHARED = {"local": {"scaffold": {"control": "shared"}}}


def read(path, line):
    found = read_by(line, find_origin(path))
    return {option: found[option] for option in ("start", "state", "public") if option in found}


@pytest.mark.parametrize(
    ("changes", "participant", "aggregation"),
    [
        ({}, [], []),
        ({"local": "scaffold"}, [1], [1]),
        (SHARED, [0, 1], [1]),
        ({"aggregation": {"batch_norm": "local"}}, [1], [1]),
        ({"aggregation": {"batch_norm": "re_estimate"}}, [], []),
        (SHARED | {"aggregation": {"batch_norm": "local"}}, [0, 1], [1]),
    ],
    ids=str,
)
@pytest.mark.parametrize("round", [1, 4])
def test_states_that_a_round_goes_on_from(changes, participant, aggregation, round):
    line = Line.model_validate(BASE | changes)
    start = {"start": [artefacts.global_model(line, round - 1, 1)]}

    def states(groups):
        files = [artefacts.round_state(line, round - 1, group) for group in groups if round > 1]
        return {"state": files} if files else {}

    update = artefacts.updates(line, round, 1)[0]
    assert read(update, line) == start | states(participant)
    public = {}
    if line.aggregation.batch_norm == "re_estimate":
        public = {"public": [artefacts.data_file(line.data, "held_out")]}
    expected = start | states(aggregation) | public
    assert read(artefacts.aggregated_model(line, round, 1), line) == expected
    assert read(artefacts.round_state(line, round, 1), line) == expected


# --- files that only some methods make ------------------------------------------------------------

JUDGED = Line.model_validate(
    BASE
    | {
        "data": {"digits": {"server_validation": 20}},
        "ensemble": "clients",
        "global": "designated",
        "server": {"steps": 2, "batch_size": 8, "learning_rate": 0.1, "drop_worst": "as_released"},
    }
)
OWN = artefacts.data_file(JUDGED.data, "server_validation")


def inputs_of(path):
    return read_by(JUDGED, find_origin(path))


def test_a_distillation_that_judges_reads_what_it_judges_by():
    inputs = inputs_of(artefacts.global_model(JUDGED, 3, 0))
    assert inputs["judged"] == artefacts.drop_worst_logits(JUDGED, 3)
    assert inputs["updates"] == artefacts.updates(JUDGED, 3, 0)
    assert inputs["server_validation"] == [OWN]


def test_logits_on_the_servers_images():
    inputs = inputs_of(artefacts.logits_file(JUDGED, 3, 0, "clients", "server_validation"))
    assert inputs["data"] == [OWN]
    assert inputs["models"] == artefacts.updates(JUDGED, 3, 0)
    assert "aggregated" not in inputs


@pytest.mark.parametrize("images", ["test", "test_own"])
def test_logits_on_the_images_of_a_role(images):
    inputs = inputs_of(artefacts.logits_file(JUDGED, 3, 0, "clients", images))
    assert inputs["data"] == [artefacts.data_file(JUDGED.data, images)]
    assert "clients" not in inputs


@pytest.mark.parametrize(
    ("kind", "about_start"),
    [("gaussian_3", False), ("dirichlet_3_0.5", False), ("gaussian_3_as_released", True)],
)
def test_logits_of_models_that_are_drawn(kind, about_start):
    inputs = inputs_of(artefacts.logits_file(JUDGED, 3, 0, kind, "test"))
    assert inputs["models"] == artefacts.updates(JUDGED, 3, 0)
    assert inputs["aggregated"] == [artefacts.aggregated_model(JUDGED, 3, 0)]
    assert inputs.get("start") == ([artefacts.global_model(JUDGED, 2, 0)] if about_start else None)


@pytest.mark.parametrize(
    ("members", "images", "made"),
    [
        ("clients", "held_out", True),
        ("clients", "server_validation", True),
        ("clients", "test", False),
        ("aggregated", "held_out", False),
    ],
)
def test_a_segment_makes_the_logits_that_it_teaches_and_judges_with(members, images, made):
    origin = find_origin(artefacts.logits_file(JUDGED, 3, 0, members, images))
    assert made_in_segment(JUDGED, origin, 1, 4, [0]) is made
    assert not made_in_segment(undistilled(JUDGED), origin, 1, 4, [0])


def test_a_segment_of_all_groups_makes_the_logits_of_those_that_are_not_distilled():
    server = {"steps": 1, "batch_size": 8, "learning_rate": 0.1}
    taught = {"ensemble": "aggregated", "global": "designated", "server": server}
    line = Line.model_validate(BASE | SHARED | taught)
    origin = find_origin(artefacts.logits_file(line, 3, 1, "aggregated", "held_out"))
    assert made_in_segment(line, origin, 1, 4, [0, 1])
    assert not made_in_segment(line, origin, 1, 4, [0])
