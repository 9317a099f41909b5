"""Distillation: loss and gradient against formulas in float64, without autograd."""

import numpy as np
import pytest
import torch

from fedstage.algorithm.global_trainers.distillation import distillation_loss
from fedstage.randomness import torch_generator
from fedstage.settings.server import Server

CLASSES = 5


def server(**changes):
    return Server.model_validate({"learning_rate": 0.1, "batch_size": 4, "steps": 9} | changes)


def random_logits(key, n=7):
    return 6 * torch.randn(n, CLASSES, generator=torch_generator("logits", key))


def softmax(logits, tau):
    odds = np.exp((logits - logits.max(1, keepdims=True)) / tau)
    return odds / odds.sum(1, keepdims=True)


def slow_loss(student, teacher, tau, scale):
    """Return scale mean_x sum_c p_c log(p_c / q_c), p the teacher's and q the student's."""
    total = 0.0
    for p, q in zip(softmax(teacher, tau), softmax(student, tau), strict=True):
        for c in range(CLASSES):
            total += p[c] * np.log(p[c] / q[c])
    return scale * total / len(student)


def slow_gradient(student, teacher, tau, scale):
    return scale / tau * (softmax(student, tau) - softmax(teacher, tau)) / len(student)


CASES = pytest.mark.parametrize(
    ("tau", "squared"), [(1.0, True), (1.0, False), (4.0, True), (4.0, False), (0.5, True)]
)


@CASES
def test_loss_is_the_plain_sum(tau, squared):
    student, teacher = random_logits("student"), random_logits("teacher")
    ours = distillation_loss(server(temperature=tau, tau_squared=squared))(student, teacher)
    scale = tau**2 if squared else 1.0
    expected = slow_loss(student.double().numpy(), teacher.double().numpy(), tau, scale)
    assert float(ours) == pytest.approx(expected, rel=1e-5)


@CASES
def test_gradient_is_the_difference_of_the_softmaxes(tau, squared):
    student, teacher = random_logits("student").requires_grad_(), random_logits("teacher")
    distillation_loss(server(temperature=tau, tau_squared=squared))(student, teacher).backward()
    scale = tau**2 if squared else 1.0
    expected = slow_gradient(
        student.detach().double().numpy(), teacher.double().numpy(), tau, scale
    )
    assert np.allclose(student.grad.numpy(), expected, rtol=1e-4, atol=1e-7)


def test_defaults_are_temperature_4_and_its_square():
    student, teacher = random_logits("student"), random_logits("teacher")
    ours = distillation_loss(server())(student, teacher)
    expected = slow_loss(student.double().numpy(), teacher.double().numpy(), 4.0, 16.0)
    assert float(ours) == pytest.approx(expected, rel=1e-5)


def test_extreme_logits_stay_finite():
    student = torch.tensor([[500.0, -500.0]]).requires_grad_()
    loss = distillation_loss(server(temperature=1.0))(student, torch.tensor([[-500.0, 500.0]]))
    loss.backward()
    assert loss.item() == pytest.approx(1000.0)
    assert student.grad.tolist() == [[1.0, -1.0]]
