"""Rules in place of the average: by hand, and in the server's step."""

import pytest
import torch
from tests.shared.settings import federated

from fedstage.algorithm.aggregation.rules import combined
from fedstage.algorithm.aggregation.rules.krum import scores
from fedstage.algorithm.aggregation.server import GroupRound, next_model
from fedstage.algorithm.exchange.updates import Update
from fedstage.errors import FedstageError
from fedstage.protocol.groups import fewest_models
from fedstage.settings.aggregation import Krum, Median, TrimmedMean
from fedstage.settings.recipes import Recipe

START = {"w": torch.zeros(2)}
FAR = 1e6


def model(first, second, mean=0.0, count=0):
    numbers = {"w": torch.tensor([first, second]), "mean": torch.tensor([mean])}
    return numbers | {"count": torch.tensor(count)}


MODELS = [model(1.0, 5.0, 1.0, 3), model(2.0, 4.0, 2.0, 4), model(4.0, 6.0, 9.0, 4)]


def of(settings, models):
    made = combined(settings, models, [1 / len(models)] * len(models), START)
    assert {name: value.dtype for name, value in made.items()} == {
        name: value.dtype for name, value in models[0].items()
    }
    return {name: value.tolist() for name, value in made.items()}


def test_the_median_is_of_each_number_buffers_included():
    assert of(Median(name="median"), MODELS) == {"w": [2.0, 5.0], "mean": [2.0], "count": 4}


def test_the_trimmed_mean_leaves_out_as_many_at_both_ends():
    four = [*MODELS, model(FAR, -FAR, FAR, 9)]
    trimmed = TrimmedMean(name="trimmed_mean", trimmed=1)
    assert of(trimmed, four) == {"w": [3.0, 4.5], "mean": [5.5], "count": 4}
    five = [*four, model(-FAR, FAR, -FAR, 0)]
    assert of(trimmed, five)["w"] == pytest.approx([7 / 3, 5.0])


#: One of five lies far off in its weights, and another in what does not count, a buffer.
FIVE = [
    model(0.0, 0.0), model(1.0, 0.0, FAR), model(0.0, 2.0), model(FAR, FAR), model(3.0, 3.0),
]  # fmt: skip


def test_scores_are_the_distances_to_the_nearest_others():
    found = scores(FIVE, START, faulty=1).tolist()
    # n - f - 2 = 2 others: squared distances 1 and 4, 1 and 5, 4 and 5; 10 and 13.
    assert found[:3] == [5.0, 6.0, 9.0]
    assert found[4] == 10.0 + 13.0
    assert found[3] > FAR


def test_krum_takes_the_best_model_whole_and_multi_krum_the_mean_of_the_best():
    assert of(Krum(name="krum"), FIVE[::-1]) == {"w": [0.0, 0.0], "mean": [0.0], "count": 0}
    two = of(Krum(name="krum", selected=2), FIVE)
    assert two == {"w": [0.5, 0.0], "mean": [FAR / 2], "count": 0}


@pytest.mark.parametrize(
    ("settings", "fewest"),
    [
        (Median(name="median"), 1),
        (TrimmedMean(name="trimmed_mean", trimmed=2), 5),
        (Krum(name="krum"), 5),
        (Krum(name="krum", faulty=0, selected=4), 6),
        (Krum(name="krum", faulty=3, selected=2), 9),
    ],
)
def test_too_few_models_are_refused(settings, fewest):
    assert fewest_models(settings) == fewest
    with pytest.raises(FedstageError, match=f"needs at least {fewest}"):
        combined(settings, MODELS[:1] * (fewest - 1), [1.0] * (fewest - 1), START)


def recipe(**aggregation):
    return Recipe.model_validate(
        federated(
            clients=5,
            participants=5,
            model="logistic_regression",
            aggregation=aggregation,
            on_divergence="drop",
        )
    )


def group_round(settings, models, start=10.0):
    updates = [
        Update(None, own, {}, {"client": client, "participant": client, "samples": 1 + 9 * client})
        for client, own in enumerate(models)
    ]
    begun = model(start, start, start)
    return GroupRound(settings, 0, updates, begun, {"w": begun["w"]}, {})


def test_a_server_optimiser_takes_the_difference_to_it():
    momentum = {"momentum": {"learning_rate": 2.0, "beta": 0.0}}
    one = group_round(recipe(rule="median", server_optimizer=momentum), MODELS)
    moved, memory = next_model(one)
    assert moved["w"].tolist() == [10.0 - 2 * 8.0, 10.0 - 2 * 5.0]
    assert {name: value.tolist() for name, value in memory.items()} == {
        "optimizer/b/w": [-8.0, -5.0]
    }


def test_one_attacker_moves_the_average_and_neither_rule():
    attacked = [*FIVE[:3], FIVE[4], FIVE[3]]
    average, _ = next_model(group_round(recipe(), attacked))
    assert average["w"].abs().max() > FAR / 10
    for rule in ("median", "trimmed_mean", "krum"):
        robust, _ = next_model(group_round(recipe(rule=rule), attacked))
        assert robust["w"].abs().max() <= 3.0
