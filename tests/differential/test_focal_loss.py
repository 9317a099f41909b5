"""The focal loss against Lin et al. 2017, Eq. 5, in NumPy, float64."""

import numpy as np
import pytest
import torch

from fedstage.models.initialisation import initialise
from fedstage.models.loading import build
from fedstage.randomness import torch_generator
from fedstage.settings.models import LogisticRegression
from fedstage.settings.optimisation import Focal
from fedstage.training.losses import client_loss
from fedstage.training.losses.focal import focal

SAMPLES, CLASSES = 29, 5
WEIGHTS = (0.25, 3.0, 1.0, 40.5, 7.125)  # float32 holds them exactly
CPU = torch.device("cpu")


@pytest.fixture
def samples():
    draw = np.random.default_rng(0)
    return 2 * draw.normal(size=(SAMPLES, CLASSES)), draw.integers(CLASSES, size=SAMPLES)


def slow_terms(logits, label, gamma, weight):
    """Return the loss of one sample and its derivatives by its logits."""
    p = np.exp(logits) / np.exp(logits).sum()
    told = p[label]
    loss = -weight * (1 - told) ** gamma * np.log(told)
    by_told = weight * (
        gamma * (1 - told) ** (gamma - 1) * np.log(told) - (1 - told) ** gamma / told
    )
    return loss, by_told * told * (np.eye(len(p))[label] - p)


def slow_focal(logits, labels, gamma, weights):
    pairs = [
        slow_terms(row, label, gamma, weights[label])
        for row, label in zip(logits, labels, strict=True)
    ]
    losses, gradients = zip(*pairs, strict=True)
    return sum(losses) / len(losses), np.stack(gradients) / len(losses)


def loss_and_gradient(loss, logits, labels):
    """Return what autograd makes of a loss."""
    asked = torch.from_numpy(logits).requires_grad_()
    value = loss(asked, torch.from_numpy(labels))
    value.backward()
    return value.item(), asked.grad.numpy()


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["unweighted", "weighted"])
def test_loss_and_gradient_are_those_of_the_equation(samples, weights):
    for gamma in (0.0, 0.5, 1.0, 2.0, 5.0):
        settings = Focal(name="focal", gamma=gamma, class_weights=weights)
        value, gradient = loss_and_gradient(client_loss(settings, CLASSES, CPU), *samples)
        expected = slow_focal(*samples, gamma, weights or [1.0] * CLASSES)
        assert value == pytest.approx(expected[0], rel=1e-12)
        np.testing.assert_allclose(gradient, expected[1], rtol=1e-10, atol=1e-15)


@pytest.mark.parametrize("gamma", [0.0, 0.01, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_samples_told_for_certain_or_not_at_all_have_finite_gradients(gamma, dtype):
    # In these numbers p_y is 1 exactly, next to 1, and next to 0.
    logits = torch.tensor([[1000.0, 0.0], [16.0, 0.0], [0.0, 80.0]], dtype=dtype).requires_grad_()

    loss = focal(logits, torch.zeros(3, dtype=torch.int64), gamma)
    loss.backward()

    assert loss.item() == pytest.approx(80 / 3, rel=1e-6)
    assert logits.grad[0].tolist() == [0.0, 0.0]
    np.testing.assert_allclose(logits.grad[2].tolist(), [-1 / 3, 1 / 3], rtol=1e-6)
    assert logits.grad.isfinite().all()


def test_one_output_has_the_focal_loss_of_its_sigmoid():
    draw = np.random.default_rng(1)
    inputs, labels = draw.normal(size=(SAMPLES, 3)), draw.integers(2, size=SAMPLES)
    model = build(LogisticRegression(name="logistic_regression", outputs=1), (3,), 2)
    initialise(model, torch_generator(0, "weights"))
    model = model.double()
    weight, bias = (value.detach().numpy()[0] for value in model.parameters())
    told = 1 / (1 + np.exp(-np.where(labels, 1, -1) * (inputs @ weight + bias)))
    expected = np.mean(np.where(labels, 4.0, 0.5) * (1 - told) ** 2 * -np.log(told))

    loss = client_loss(Focal(name="focal", class_weights=(0.5, 4.0)), 2, CPU)

    value = loss(model(torch.from_numpy(inputs)), torch.from_numpy(labels)).item()
    assert value == pytest.approx(expected, rel=1e-12)
