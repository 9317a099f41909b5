"""What a group's round aggregates and counts where no weights travel."""

import pytest
import torch
from tests.shared.settings import distilled

from fedstage.algorithm.aggregation.server import GroupRound, next_client_state, next_model, traffic
from fedstage.algorithm.exchange.updates import Update
from fedstage.settings.recipes import Recipe

RECIPE = Recipe.model_validate(
    distilled(
        participants=3,
        model="logistic_regression",
        local="digest",
        ensemble="clients",
    )
)
START = {"w": torch.zeros(2)}


def update(client, round_, value=None):
    """Return a client's update; without a value it diverged."""
    notes = {"round": round_, "group": 0, "participant": client, "client": client, "samples": 5}
    if value is None:
        return Update(None, {}, {}, notes | {"diverged_at": 1})
    return Update(None, {"w": torch.full((2,), value)}, {}, notes)


def group_round(round_, *received, state=None):
    return GroupRound(RECIPE, 0, list(received), START, START, state or {}, logits=7)


def test_no_weights_are_averaged_but_each_client_keeps_its_own():
    one = group_round(2, update(0, 2, 1.0), update(3, 2), state={"client/3/w": torch.ones(2)})
    model, memory = next_model(one)
    assert model is START
    assert memory == {}
    state = {name: value.tolist() for name, value in next_client_state(one).items()}
    assert state == {"client/0/w": [1.0, 1.0], "client/3/w": [1.0, 1.0]}


SPLIT = Recipe.model_validate(
    {
        **RECIPE.model_dump(mode="json", by_alias=True),
        "local": "gkt",
        "model": "resnet_upper",
        "architectures": ["resnet_upper", "resnet_lower"],
        "global_models": 2,
        "server_model": True,
    }
)


@pytest.mark.parametrize(("round_", "down"), [(1, 0), (2, 5 * 4 * 3), (9, 5 * 4 * 3)])
def test_of_each_sample_features_logits_and_label_are_sent_and_logits_come_back(round_, down):
    received = [update(0, round_, 1.0), update(1, round_)]
    one = GroupRound(SPLIT, 1, received, START, START, {}, logits=3, features=64)
    up = 5 * 4 * (64 + 3 + 1)
    assert traffic(one) == {"bytes_up": [up, 0], "bytes_down": [down, down]}
    assert next_model(one) == (START, {})
    state = {name: value.tolist() for name, value in next_client_state(one).items()}
    assert state == {"client/0/w": [1.0, 1.0]}
