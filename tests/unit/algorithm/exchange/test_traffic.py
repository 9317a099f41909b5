"""Bytes that a participant sends: when label counts travel."""

import pytest

from fedstage.algorithm.exchange.traffic import counts_sent
from fedstage.settings.recipes import Recipe

BASE = {
    "data": "digits",
    "clients": 4,
    "participants": 2,
    "partition": "iid",
    "model": "cnn_small",
    "client": {"epochs": 1, "batch_size": 8, "learning_rate": 0.1},
    "server": {"steps": 2, "batch_size": 8, "learning_rate": 0.1},
    "seed": 0,
}
TAUGHT = {"ensemble": "clients", "global": {"basic": {"warm_up": 2}}}
IMAGES = {"generator": "fedftg", "public": "generated"}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [({}, [0, 0, 0, 0]), (TAUGHT, [0, 0, 0, 0]), (TAUGHT | IMAGES, [0, 0, 40, 40])],
    ids=["no student", "public images", "generated images"],
)
def test_counts_travel_in_rounds_with_a_student_of_generated_images(changes, expected):
    recipe = Recipe.model_validate(BASE | changes)
    assert [counts_sent(recipe, round_, 10) for round_ in range(1, 5)] == expected
