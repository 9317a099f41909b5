"""Differential privacy against plain implementations, with the noise that the package has drawn.

From the artefacts of a real run a reference must end in the run's weights after three rounds.
"""

from types import SimpleNamespace

import pytest
import torch
from reference.dp_fedavg import dp_fedavg
from reference.dp_sgd import dp_sgd
from reference_calls import rounds
from reference_runs import EXACT, ROUNDS, experiment, make

from fedstage.plan.one_shot_sharing import local_recipe
from fedstage.plan.training import global_model
from fedstage.plan.unfederated import local_model
from fedstage.protocol.digests import own_key
from fedstage.protocol.privacy import private_steps
from fedstage.randomness import torch_generator
from fedstage.training.batches import poisson_batches

pytestmark = pytest.mark.workflow

#: Clips that some changes, or gradients, are longer than, and some shorter.
METHODS = {
    "clients": {
        "local": "fedavg",
        "participation": "poisson",
        "aggregation": {"weights": "uniform"},
        "privacy": {"client": {"clip": 0.5, "noise": 0.1}},
    },
    "samples": {
        "local": "fedavg",
        "client": {"epochs": 1, "batch_size": 32},
        "privacy": {"example": {"clip": 3.0, "noise": 0.5}},
    },
    "alone": {
        "like": "samples",
        "training": "one_shot",
        "rounds": 1,
        "aggregator": "averaging",
        "privacy": {"example": {"clip": 5.0, "noise": 0.5}},
    },
}
CONFIG = {
    "targets": ["exact"],
    "execution": {"granularity": "segment"},
    "experiments": {"exact": experiment("Exact", METHODS, {"method": list(METHODS)}, EXACT)},
}
CLOSE = 2e-6


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make(tmp_path_factory.mktemp("private"), CONFIG)


def normal_like(weights, generator, type_):
    """Return normal tensors like weights by name, drawn in the order of names."""
    drawn = {
        name: torch.randn(weights[name].shape, dtype=type_, generator=generator)
        for name in sorted(weights)
    }
    return [drawn[name] for name in weights]


def compare(made, file, model):
    weights = made.tensors(file)
    own = model.state_dict()
    assert own.keys() == weights.keys()
    for name, value in own.items():
        torch.testing.assert_close(value, weights[name], rtol=0, atol=CLOSE)


def test_clients_are_as_private(made):
    recipe = made.recipe("clients")
    world, how = made.recorded(recipe), recipe.privacy.client
    parameters = dict(world.network().named_parameters())

    def normal(round_):
        own = own_key(global_model(recipe, round_, 0).job.config)
        generator = torch_generator(recipe.seed, own, "aggregation", round_, 0, "noise")
        return normal_like(parameters, generator, torch.float64)

    own = {"clip": how.clip, "noise": how.noise, "expected": recipe.participants}
    model, lengths = dp_fedavg(world, **rounds(recipe), **own, normal=normal)
    assert min(lengths) < how.clip < max(lengths)
    compare(made, global_model(recipe, ROUNDS, 0), model)


def test_samples_are_as_private(made):
    recipe = made.recipe("samples")

    def key(round_, client):
        return recipe.seed, "local_training", round_, client

    def batches(round_, client, samples):
        steps = private_steps(recipe.client, samples)
        generator = torch_generator(*key(round_, client), "batches")
        return poisson_batches(samples, recipe.client.batch_size, steps, generator)

    world, how, generators = made.recorded(recipe, batches), recipe.privacy.example, {}
    parameters = dict(world.network().named_parameters())

    def normal(round_, client, step):
        seed, *place = key(round_, client)
        own = own_key(global_model(recipe, round_, 0).job.config)
        noise = torch_generator(seed, own, *place, "noise")
        generator = generators.setdefault((round_, client), noise)
        return normal_like(parameters, generator, torch.float32)

    own = {"batch": recipe.client.batch_size, "clip": how.clip, "noise": how.noise}
    model, lengths = dp_sgd(world, **rounds(recipe), **own, normal=normal)
    assert min(lengths) < how.clip < max(lengths)
    compare(made, global_model(recipe, ROUNDS, 0), model)


def test_models_that_clients_train_alone_are_as_private(made):
    recipe = made.recipe("alone")
    world, how, client = made.recorded(recipe), recipe.privacy.example, recipe.client
    parameters = dict(world.network().named_parameters())
    for number in range(world.clients):
        file = local_model(local_recipe(recipe), f"client_{number}")
        own, place = own_key(file.job.config), ("local_model", number)
        noise = torch_generator(recipe.seed, own, *place, "noise")

        def batches(round_, chosen, samples, epochs, place=place):
            drawn = torch_generator(recipe.seed, *place, "batches")
            return poisson_batches(
                samples, client.batch_size, private_steps(client, samples), drawn
            )

        alone = SimpleNamespace(
            network=world.network, samples=world.samples, batches=batches,
            participants=lambda round_, number=number: [number],
        )  # fmt: skip
        model, lengths = dp_sgd(
            alone, rounds=1, epochs=client.epochs, rate=client.learning_rate,
            batch=client.batch_size, clip=how.clip, noise=how.noise,
            normal=lambda *_, noise=noise: normal_like(parameters, noise, torch.float32),
        )  # fmt: skip
        assert min(lengths) < how.clip < max(lengths)
        compare(made, file, model)
