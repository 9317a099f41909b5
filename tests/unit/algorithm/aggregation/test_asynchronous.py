"""The server's step with updates that started from older models, against plain computations."""

import pytest
import torch
from tests.shared.settings import federated

from fedstage.algorithm.aggregation.asynchronous import discount
from fedstage.algorithm.aggregation.server import GroupRound, next_model
from fedstage.algorithm.exchange.updates import Update
from fedstage.settings.aggregation import Aggregation
from fedstage.settings.recipes import Recipe

RECIPE = federated(
    participants=3,
    model="logistic_regression",
    staleness={"random": {"probabilities": [0.5, 0.3, 0.2]}},
)
ROUND = 5
FEDASYNC = {"learning_rate": 0.6, "discount": {"polynomial": {"exponent": 0.5}}}
FEDBUFF = {"weights": "uniform", "discount": "polynomial", "stale": "changes"}
#: The global models after some rounds: a parameter, and a running mean and a count as buffers.
BASES = {
    round_: {
        "w": torch.tensor([0.1, -0.2]) * round_,
        "mean": torch.tensor([1.0 * round_]),
        "count": torch.tensor(10 * round_),
    }
    for round_ in (2, 3, 4)
}


def update(participant, delay, samples=4, **metadata):
    generator = torch.Generator().manual_seed(participant)
    weights = {
        "w": torch.randn(2, generator=generator),
        "mean": torch.randn(1, generator=generator),
        "count": torch.tensor(50 + participant),
    }
    place = {
        "round": ROUND,
        "group": 0,
        "participant": participant,
        "client": participant,
        "base_round": 4 - delay,
    }
    return Update(None, weights, {}, place | {"samples": samples} | metadata)


def after(aggregation, updates, state=None, **changes):
    recipe = Recipe.model_validate(RECIPE | changes | {"aggregation": aggregation})
    bases = BASES if recipe.aggregation.stale == "changes" else {}
    start, parameters = BASES[4], {"w": BASES[4]["w"]}
    group = GroupRound(recipe, 0, updates, start, parameters, state or {}, bases=bases)
    return next_model(group)[0]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("constant", [1, 1, 1, 1]),
        ({"polynomial": {"exponent": 0.5}}, [1, 0.5**0.5, 3**-0.5, 0.5]),
        ({"polynomial": {"exponent": 2.0}}, [1, 1 / 4, 1 / 9, 1 / 16]),
    ],
    ids=str,
)
def test_discounts_by_hand(settings, expected):
    chosen = Aggregation.model_validate({"discount": settings}).discount
    assert [discount(chosen, delay) for delay in range(4)] == pytest.approx(expected)


def test_fedasync_mixes_the_models_of_client_and_server():
    one = update(0, delay=2)
    alpha = 0.6 * 3**-0.5
    expected = (1 - alpha) * BASES[4]["w"] + alpha * one.weights["w"]
    torch.testing.assert_close(after(FEDASYNC, [one])["w"], expected)
    # One that is in step counts in full.
    one = update(0, delay=0)
    expected = 0.4 * BASES[4]["w"] + 0.6 * one.weights["w"]
    torch.testing.assert_close(after(FEDASYNC, [one])["w"], expected)


def test_fedbuff_adds_what_each_has_changed_since_its_own_start():
    updates = [update(participant, delay) for participant, delay in enumerate((0, 1, 2))]
    expected = BASES[4]["w"] + sum(
        (1 + delay) ** -0.5 / 3 * (one.weights["w"] - BASES[4 - delay]["w"])
        for delay, one in enumerate(updates)
    )
    torch.testing.assert_close(after(FEDBUFF, updates)["w"], expected)


def test_running_statistics_are_blended_and_counts_stay_whole():
    updates = [update(0, delay=1), update(1, delay=0)]
    found = after(FEDBUFF, updates)
    shares = [0.5**0.5 / 2, 0.5]
    expected = BASES[4]["mean"] * (1 - sum(shares)) + sum(
        share * one.weights["mean"] for share, one in zip(shares, updates, strict=True)
    )
    torch.testing.assert_close(found["mean"], expected)
    assert found["count"].dtype == torch.int64
    assert int(found["count"]) == round(40 * (1 - sum(shares)) + 50 * shares[0] + 51 * shares[1])


@pytest.mark.parametrize("settings", [FEDBUFF, FEDASYNC], ids=str)
def test_without_delays_it_is_the_average_bit_for_bit(settings):
    updates = [update(participant, delay=0) for participant in range(3)]
    plain = {key: settings[key] for key in ("weights", "learning_rate") if key in settings}
    synchronised = after(plain, updates, staleness="none")
    found = after(settings, updates)
    assert all(torch.equal(found[name], synchronised[name]) for name in synchronised)


def test_server_optimisers_take_the_discounted_change():
    updates = [update(participant, delay) for participant, delay in enumerate((0, 1, 2))]
    momentum = {"server_optimizer": {"momentum": {"learning_rate": 0.5, "beta": 0.9}}}
    change = after(FEDBUFF, updates)["w"] - BASES[4]["w"]
    found = after(FEDBUFF | momentum, updates)["w"]
    torch.testing.assert_close(found, BASES[4]["w"] + 0.5 * change)
