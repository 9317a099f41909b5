"""Distillation: loss, gradient and training against formulas in float64, without autograd."""

import numpy as np
import pytest
import torch

from fedstage.algorithm.global_trainers.distillation import distillation_loss
from fedstage.models.build import build
from fedstage.models.initialisation import initialise
from fedstage.randomness import torch_generator
from fedstage.settings.models import LogisticRegression
from fedstage.settings.server import Server
from fedstage.training.batches import public_batches
from fedstage.training.loop import train

INFO = {"mean": [0.5], "std": [0.25]}
CLASSES = 5


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    torch.set_num_threads(1)  # as stages do; more only cost time on tensors this small


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


def test_the_teacher_comes_first():
    """KL is not symmetric: the student must cover what the teacher holds possible."""
    student, teacher = random_logits("student"), random_logits("teacher")
    loss = distillation_loss(server(temperature=1.0))
    assert float(loss(student, teacher)) != pytest.approx(float(loss(teacher, student)), rel=0.01)
    ours = float(loss(student, teacher))
    expected = slow_loss(student.double().numpy(), teacher.double().numpy(), 1.0, 1.0)
    assert ours == pytest.approx(expected, rel=1e-5)


def test_a_student_that_agrees_has_neither_loss_nor_gradient():
    teacher = random_logits("teacher")
    student = (teacher + 3.0).requires_grad_()  # a shift of all logits changes no probability
    loss = distillation_loss(server())(student, teacher)
    loss.backward()
    assert loss.item() == pytest.approx(0.0, abs=1e-5)
    assert student.grad.abs().max() < 1e-6


def test_extreme_logits_stay_finite():
    student = torch.tensor([[500.0, -500.0]]).requires_grad_()
    loss = distillation_loss(server(temperature=1.0))(student, torch.tensor([[-500.0, 500.0]]))
    loss.backward()
    assert loss.item() == pytest.approx(1000.0)
    assert student.grad.tolist() == [[1.0, -1.0]]


def slow_distillation(weights, images, teacher, indices, settings):
    """Teach softmax regression with momentum, in float64."""
    w, b = (weights[name].double().numpy() for name in ("linear.weight", "linear.bias"))
    pixels = (images.numpy().reshape(len(images), -1) / 255 - 0.5) / 0.25
    scale = settings.temperature**2 if settings.tau_squared else 1.0
    velocity_w, velocity_b, losses = 0.0, 0.0, []
    for index in indices:
        x, target = pixels[index.numpy()], teacher[index].double().numpy()
        student = x @ w.T + b
        losses.append(slow_loss(student, target, settings.temperature, scale))
        slope = slow_gradient(student, target, settings.temperature, scale)
        velocity_w = settings.momentum * velocity_w + slope.T @ x
        velocity_b = settings.momentum * velocity_b + slope.sum(0)
        w = w - settings.learning_rate * velocity_w
        b = b - settings.learning_rate * velocity_b
    return w, b, np.mean(losses)


@pytest.mark.parametrize("change", [{}, {"tau_squared": False}, {"momentum": 0.9}], ids=str)
def test_training_is_the_slow_loop(change):
    settings = server(**change)
    generator = torch_generator(0, "images")
    images = torch.randint(0, 256, (10, 1, 2, 2), generator=generator, dtype=torch.uint8)
    teacher = random_logits("teacher", n=10)
    student = build(LogisticRegression(name="logistic_regression"), (1, 2, 2), CLASSES)
    initialise(student, torch_generator(0, "weights"))
    start = {name: value.clone() for name, value in student.state_dict().items()}
    indices = public_batches(10, settings.batch_size, settings.steps, torch_generator(0, "public"))
    loss, unused = distillation_loss(settings), torch_generator(0, "augmentation")
    outcome = train(student, images, teacher, indices, settings, loss, INFO, unused)
    w, b, mean = slow_distillation(start, images, teacher, indices, settings)
    after = student.state_dict()
    assert np.allclose(after["linear.weight"].numpy(), w, rtol=1e-4, atol=1e-5)
    assert np.allclose(after["linear.bias"].numpy(), b, rtol=1e-4, atol=1e-5)
    assert outcome.loss == pytest.approx(mean, rel=1e-4)
    assert outcome.steps == 9
