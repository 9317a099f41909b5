from pathlib import Path

import pyarrow as pa
import pytest
from accounts import renyi_epsilon
from measured import described
from tests.shared.settings import CLIENT, federated, one_shot

from fedstage.data.partitions import HISTOGRAM_SCHEMA
from fedstage.errors import FedstageError
from fedstage.experiments.runs_file import ExperimentRun
from fedstage.protocol.privacy import delta_of
from fedstage.settings.recipes import Recipe
from fedstage.stages.measured import (
    client_epsilon,
    fixed_size_epsilon,
    guarantee,
    poisson_epsilon,
)
from fedstage.storage.tables import save_table

RECIPE = federated(
    clients=20,
    participants=4,
    model="logistic_regression",
    aggregation={"weights": "uniform"},
    client=CLIENT | {"batch_size": 8},
)


def epsilon(rounds=3, clip=0.5, noise=2.0, **changes):
    private = {"client": {"clip": clip, "noise": noise, "delta": 0.01}}
    recipe = RECIPE | {"privacy": private} | changes
    parts = [{"length": {"rounds": rounds}, "federated": recipe}]
    found = guarantee(ExperimentRun.model_validate(described({}, candidates=[{"parts": parts}])))
    assert found.get("delta", 0.01) == 0.01
    return found.get("epsilon")


def test_epsilon_is_of_all_rounds_and_of_how_clients_are_drawn():
    assert epsilon() == fixed_size_epsilon(2.0, 4, 20, 3, 0.01)
    assert epsilon(participation="poisson") == poisson_epsilon(2.0, 0.2, 3, 0.01)
    assert epsilon(participants=20) == poisson_epsilon(2.0, 1.0, 3, 0.01)
    assert epsilon(participation="poisson") < epsilon(5, participation="poisson") < epsilon(5)


def test_a_delta_that_is_not_stated_follows_from_the_number_of_clients():
    private = {"client": {"clip": 0.5, "noise": 2.0}}
    recipe = Recipe.model_validate(RECIPE | {"privacy": private, "participation": "poisson"})
    assert delta_of(recipe.privacy.client, 20) == pytest.approx(20**-1.1)
    found = client_epsilon(recipe, recipe.privacy.client, 3)
    assert found == poisson_epsilon(2.0, 0.2, 3, 20**-1.1)


# --- samples --------------------------------------------------------------------------------------

#: Training samples of three clients in two classes each, and validation samples that do not count.
SAMPLES = {0: 20, 1: 40, 2: 10}


def example(folder, how, taking_part, **changes):
    """Return the guarantee of a run in whose rounds these clients took part."""
    rows = [
        (client, role, label, number // 2)
        for client, number in SAMPLES.items()
        for role, number in (("train", number), ("validation", 1000))
        for label in (0, 1)
    ]
    columns = zip(("client", "role", "label", "samples"), zip(*rows, strict=True), strict=True)
    histogram = folder / "results" / "histogram.parquet"
    save_table(histogram, {name: list(values) for name, values in columns}, HISTOGRAM_SCHEMA)
    tables = []
    for round_, clients in enumerate(taking_part):
        tables.append(str(folder / "results" / f"{round_}.parquet"))
        schema = pa.schema([("client", pa.int32())])
        save_table(Path(tables[-1]), {"client": list(clients)}, schema)
    recipe = RECIPE | {"clients": 3, "participants": 2, "privacy": {"example": how}} | changes
    parts = [{"length": {"rounds": len(tables)}, "federated": recipe}]
    made_of = [{"parts": parts, "participants": tables}]
    run = described({}, partition=str(histogram), candidates=made_of)
    return guarantee(ExperimentRun.model_validate(run))


HOW = {"clip": 0.5, "noise": 2.0, "delta": 0.01}


def test_of_samples_it_is_the_largest_of_the_clients(tmp_path):
    found = example(tmp_path, HOW, [(0, 1), (0, 1), (1, 2)])
    # Steps of an epoch: 3, 5 and 2 batches of 8.
    of_clients = [
        poisson_epsilon(2.0, rate, steps, 0.01)
        for rate, steps in ((8 / 20, 2 * 3), (8 / 40, 3 * 5), (8 / 10, 2))
    ]
    assert found == {"example_epsilon": max(of_clients), "delta": 0.01}
    assert len(set(of_clients)) == 3


def test_in_one_shot_it_is_that_of_a_model_or_of_the_aggregator(tmp_path):
    training = {"federated": {"rounds": 50, "steps": 2, "batch_size": 4}}
    fens = {"aggregator": "mlp", "aggregator_training": training, "aggregator_fraction": 0.2}
    rows = [(c, role, 0, n) for c in (0, 1) for role, n in (("train", 40), ("aggregator", 10 + c))]
    columns = zip(("client", "role", "label", "samples"), zip(*rows, strict=True), strict=True)
    histogram = tmp_path / "histogram.parquet"
    save_table(histogram, {name: list(values) for name, values in columns}, HISTOGRAM_SCHEMA)
    found = {}
    for name, how in (("averaging", {"aggregator": "averaging"}), ("fens", fens)):
        recipe = one_shot(clients=2, client=CLIENT | {"batch_size": 8}, privacy={"example": HOW})
        parts = [{"length": {"rounds": 1}, "one_shot": recipe | how}]
        run = described({}, partition=str(histogram), candidates=[{"parts": parts}])
        found[name] = guarantee(ExperimentRun.model_validate(run))["example_epsilon"]
    steps = 5 * CLIENT["epochs"]
    assert found["averaging"] == poisson_epsilon(2.0, 8 / 40, steps, 0.01)
    assert found["fens"] == poisson_epsilon(2.0, 4 / 10, 100, 0.01) > found["averaging"]


def test_the_delta_of_samples_is_less_than_one_of_the_largest_client(tmp_path):
    found = example(tmp_path, {"clip": 0.5, "noise": 2.0}, [(0,)])
    assert found["delta"] == pytest.approx(40**-1.1)
    with pytest.raises(FedstageError, match=r"delta = 0\.025: must be less than 1 / 40"):
        example(tmp_path, HOW | {"delta": 0.025}, [(0,)])


# --- accounting -----------------------------------------------------------------------------------


# Of dp-accounting 0.6.0, computed apart from this repository.
REFERENCES = [
    (0.01, 1.0, 1000, "2.101", "1.828"),
    (0.1, 1.0, 100, "7.904", "7.047"),
    (1.0, 5.0, 10, "2.814", "2.594"),
]


@pytest.mark.parametrize(("rate", "noise", "steps", "renyi", "losses"), REFERENCES)
def test_reference_values(rate, noise, steps, renyi, losses):
    assert f"{renyi_epsilon(noise, rate, steps, 1e-5):.3f}" == renyi
    assert f"{poisson_epsilon(noise, rate, steps, 1e-5):.3f}" == losses


def test_fewer_steps_more_noise_and_a_smaller_sample_give_more_privacy():
    some = fixed_size_epsilon(4.0, 10, 100, 20, 1e-5)
    assert fixed_size_epsilon(4.0, 10, 100, 10, 1e-5) < some
    assert fixed_size_epsilon(5.0, 10, 100, 20, 1e-5) < some
    assert fixed_size_epsilon(4.0, 5, 100, 20, 1e-5) < some
    assert poisson_epsilon(4.0, 0.1, 20, 1e-5) < some  # whose sum changes by C, not by 2 C


def test_replacement_in_a_sample_of_all_is_a_gaussian_of_half_the_noise():
    replaced = fixed_size_epsilon(4.0, 10, 10, 5, 1e-5)
    assert replaced == pytest.approx(renyi_epsilon(2.0, 1.0, 5, 1e-5), rel=1e-6)
