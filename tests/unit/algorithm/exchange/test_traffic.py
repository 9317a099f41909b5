"""Bytes that a participant sends: when label counts travel."""

import pytest
from tests.shared.settings import distilled

from fedstage.algorithm.exchange.traffic import counts_sent
from fedstage.settings.recipes import Recipe

BASE = distilled()
TAUGHT = {"ensemble": "clients", "global": {"basic": {"warm_up": 2}}}
IMAGES = {"generator": "fedftg", "public": "generated"}
LAST_TWO = {"ensemble": {"aggregated": {"checkpoints": 2}}}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, [0, 0, 0, 0]),
        (TAUGHT, [0, 0, 0, 0]),
        (TAUGHT | IMAGES, [0, 0, 40, 40]),
        (TAUGHT | IMAGES | LAST_TWO, [0, 40, 40, 40]),
    ],
    ids=["no student", "public images", "generated images", "models of two rounds"],
)
def test_counts_travel_in_rounds_whose_models_teach_on_generated_images(changes, expected):
    recipe = Recipe.model_validate(BASE | changes)
    assert [counts_sent(recipe, round_, 10) for round_ in range(1, 5)] == expected
