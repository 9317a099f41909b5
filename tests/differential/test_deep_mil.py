"""DeepMIL against its equations, bag by bag in NumPy, float64."""

import numpy as np
import pytest
import torch

from fedstage.data.bags import Bags
from fedstage.models.initialisation import initialise
from fedstage.models.loading import build
from fedstage.randomness import torch_generator
from fedstage.settings.models import DeepMil

FEATURES, SIZES = 6, [5, 1, 9]
SETTINGS = DeepMil(name="deep_mil", width=4)


@pytest.fixture
def model():
    built = build(SETTINGS, (FEATURES,), 2)
    initialise(built, torch_generator(0, "weights"))
    return built.double()


@pytest.fixture
def bags():
    generator = torch_generator(1, "bags")
    instances = torch.randn(sum(SIZES), FEATURES, generator=generator, dtype=torch.float64)
    return Bags(instances, torch.tensor([0, *SIZES]).cumsum(0))


def linear(weights, name, x):
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def by_hand(weights, instances):
    """Return z of one bag [L, F]."""
    h = linear(weights, "embed", instances)
    gate = 1 / (1 + np.exp(-linear(weights, "attention.gate", h)))
    scores = linear(
        weights, "attention.score", np.tanh(linear(weights, "attention.value", h)) * gate
    )
    attention = np.exp(scores - scores.max())
    bag = (attention / attention.sum() * h).sum(0)
    hidden = np.maximum(linear(weights, "classifier.0", bag), 0)
    hidden = np.maximum(linear(weights, "classifier.2", hidden), 0)
    return linear(weights, "classifier.4", hidden)[0]


def test_logits_are_those_of_the_equations(model, bags):
    weights = {name: value.numpy() for name, value in model.state_dict().items()}
    expected = [
        by_hand(weights, bags.instances[start:end].numpy())
        for start, end in zip(bags.starts[:-1], bags.starts[1:], strict=True)
    ]

    logits = model(bags.padded()).detach().numpy()

    np.testing.assert_array_equal(logits[:, 0], 0)
    np.testing.assert_allclose(logits[:, 1], expected, rtol=1e-10)
    assert np.ptp(expected) > 1e-3


def test_what_is_said_of_a_bag_depends_on_no_other(model, bags):
    together = model(bags.padded())
    for number in range(len(SIZES)):
        alone = model(bags[torch.tensor([number])].padded())
        torch.testing.assert_close(alone[0], together[number], rtol=1e-12, atol=1e-12)


def test_order_of_instances_does_not_matter(model, bags):
    mixed = Bags(bags.instances.flip(0), torch.tensor([0, *reversed(SIZES)]).cumsum(0))
    torch.testing.assert_close(model(mixed.padded()).flip(0), model(bags.padded()))


def test_gradient_reaches_every_parameter_and_is_finite_with_padding(model, bags):
    torch.nn.functional.cross_entropy(model(bags.padded()), torch.tensor([1, 0, 1])).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad.isfinite().all(), name
        # A score that is moved for all instances changes no softmax.
        assert parameter.grad.any() or name == "attention.score.bias", name
