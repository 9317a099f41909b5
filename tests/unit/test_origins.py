"""What the equation of a file reads; tests of `why` compare it with what jobs have read."""

import pytest

from fedstage import graph
from fedstage.config import Line
from fedstage.origins import find_origin, read_by

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
    start = {"start": [graph.global_model(line, round - 1, 1)]}

    def states(groups):
        files = [graph.round_state(line, round - 1, group) for group in groups if round > 1]
        return {"state": files} if files else {}

    update = graph.updates(line, round, 1)[0]
    assert read(update, line) == start | states(participant)
    public = {}
    if line.aggregation.batch_norm == "re_estimate":
        public = {"public": [graph.data_file(line.data, "held_out")]}
    expected = start | states(aggregation) | public
    assert read(graph.aggregated_model(line, round, 1), line) == expected
    assert read(graph.round_state(line, round, 1), line) == expected
