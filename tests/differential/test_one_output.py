"""A model with one output, against the sigmoid and the binary cross entropy in NumPy, float64."""

import numpy as np
import pytest
import torch

from fedstage.models.initialisation import initialise
from fedstage.models.loading import build
from fedstage.randomness import torch_generator
from fedstage.settings.models import LogisticRegression
from fedstage.settings.optimisation import Client
from fedstage.training.batches import client_batches
from fedstage.training.loop import train

INFO = {"mean": [], "std": []}
FEATURES, SAMPLES = 5, 23
SETTINGS = LogisticRegression(name="logistic_regression", outputs=1)
CLIENT = Client(steps=40, batch_size=4, learning_rate=0.3, last_batch="keep")


@pytest.fixture
def samples():
    draw = np.random.default_rng(0)
    return draw.normal(size=(SAMPLES, FEATURES)), draw.integers(2, size=SAMPLES)


@pytest.fixture
def model():
    built = build(SETTINGS, (FEATURES,), 2)
    initialise(built, torch_generator(0, "weights"))
    return built.double()


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def parameters(model):
    weight, bias = (value.detach().numpy().copy() for value in model.parameters())
    return weight[0], bias[0]


def test_logits_are_zero_and_the_one_output(model, samples):
    weight, bias = parameters(model)

    logits = model(torch.from_numpy(samples[0])).detach().numpy()

    np.testing.assert_array_equal(logits[:, 0], 0.0)
    np.testing.assert_allclose(logits[:, 1], samples[0] @ weight + bias, rtol=1e-12)


def test_loss_is_the_binary_cross_entropy(model, samples):
    weight, bias = parameters(model)
    told, labels = sigmoid(samples[0] @ weight + bias), samples[1]
    expected = -np.mean(labels * np.log(told) + (1 - labels) * np.log(1 - told))

    logits = model(torch.from_numpy(samples[0]))
    loss = torch.nn.functional.cross_entropy(logits, torch.from_numpy(labels))

    assert loss.item() == pytest.approx(expected, rel=1e-12)


def test_training_steps_are_those_of_binary_logistic_regression(model, samples):
    (weight, bias), (inputs, labels) = parameters(model), samples
    batches = client_batches(SAMPLES, CLIENT, torch_generator(1, "batches"))

    train(
        model,
        torch.from_numpy(inputs),
        torch.from_numpy(labels),
        batches,
        CLIENT,
        torch.nn.functional.cross_entropy,
        INFO,
        torch_generator(1, "augmentation"),
    )

    for batch in batches:
        rows = batch.numpy()
        error = sigmoid(inputs[rows] @ weight + bias) - labels[rows]
        weight -= CLIENT.learning_rate * error @ inputs[rows] / len(rows)
        bias -= CLIENT.learning_rate * error.mean()
    trained = parameters(model)
    np.testing.assert_allclose(trained[0], weight, rtol=1e-10)
    np.testing.assert_allclose(trained[1], bias, rtol=1e-10)


def test_two_outputs_take_other_steps(model, samples):
    # The difference of two outputs moves twice as fast: the same functions, another training.
    inputs, labels = (torch.from_numpy(part) for part in samples)
    weight, bias = (value.detach().clone() for value in model.parameters())
    two = build(LogisticRegression(name="logistic_regression"), (FEATURES,), 2).double()
    two.load_state_dict(
        {
            "linear.weight": torch.cat([0 * weight, weight]),
            "linear.bias": torch.cat([0 * bias, bias]),
        }
    )
    for one in (model, two):
        torch.nn.functional.cross_entropy(one(inputs), labels).backward()
    gradient = two.linear.weight.grad

    torch.testing.assert_close(gradient[1:], model.linear.weight.grad)
    torch.testing.assert_close(gradient[:1], -model.linear.weight.grad)
