"""What `fedstage why` says of the files that only some methods make."""

import pytest

from fedstage import graph
from fedstage.config import Line
from fedstage.lines import undistilled
from fedstage.origins import find_origin, made_in_segment, read_by

LINE = Line.model_validate(
    {
        "data": {"digits": {"server_validation": 20}},
        "clients": 8,
        "partition": "iid",
        "participants": 4,
        "model": "cnn_small",
        "global_models": 2,
        "client": {"epochs": 1, "batch_size": 8, "learning_rate": 0.1},
        "ensemble": "clients",
        "global": "designated",
        "server": {"steps": 2, "batch_size": 8, "learning_rate": 0.1, "drop_worst": "as_released"},
        "seed": 0,
    }
)
OWN = graph.data_file(LINE.data, "server_validation")


def read(path):
    return read_by(LINE, find_origin(path))


def test_a_distillation_that_judges_reads_what_it_judges_by():
    inputs = read(graph.global_model(LINE, 3, 0))
    assert inputs["judged"] == graph.judged_logits(LINE, 3)
    assert inputs["updates"] == graph.updates(LINE, 3, 0)
    assert inputs["server_validation"] == [OWN]


def test_logits_on_the_servers_images():
    inputs = read(graph.logits_file(LINE, 3, 0, "clients", "server_validation"))
    assert inputs["data"] == [OWN]
    assert inputs["models"] == graph.updates(LINE, 3, 0)
    assert "aggregated" not in inputs


@pytest.mark.parametrize(
    ("kind", "about_start"),
    [("gaussian_3", False), ("dirichlet_3_0.5", False), ("gaussian_3_as_released", True)],
)
def test_logits_of_models_that_are_drawn(kind, about_start):
    inputs = read(graph.logits_file(LINE, 3, 0, kind, "test"))
    assert inputs["models"] == graph.updates(LINE, 3, 0)
    assert inputs["aggregated"] == [graph.aggregated_model(LINE, 3, 0)]
    assert inputs.get("start") == ([graph.global_model(LINE, 2, 0)] if about_start else None)


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
    origin = find_origin(graph.logits_file(LINE, 3, 0, members, images))
    assert made_in_segment(LINE, origin, 1, 4, [0]) is made
    assert not made_in_segment(undistilled(LINE), origin, 1, 4, [0])
