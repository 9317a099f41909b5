import math

import pytest
import torch
from torch import nn

from fedstage.errors import FedstageError
from fedstage.models.initialisation import initialise
from fedstage.models.loading import build
from fedstage.randomness import torch_generator
from fedstage.settings.models import CnnSmall
from fedstage.settings.optimisation import Optimiser
from fedstage.training.loop import train

INFO = {"mean": [0.4], "std": [0.3]}
CLASSES = 3


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    torch.set_num_threads(1)  # as stages do; more only cost time on tensors this small


class Linear(nn.Module):
    """Logits W x of images of 2x2 pixels: small enough for a loop by hand."""

    def __init__(self):
        super().__init__()
        start = torch.randn(CLASSES, 4, generator=torch_generator(0, "weights"))
        self.weight = nn.Parameter(start)

    def forward(self, images):
        return images.flatten(1) @ self.weight.T


def data(n=12, size=2):
    generator = torch_generator(0, "data")
    images = torch.randint(0, 256, (n, 1, size, size), generator=generator, dtype=torch.uint8)
    return images, torch.randint(0, CLASSES, (n,), generator=generator)


def settings(**changes):
    return Optimiser.model_validate({"learning_rate": 0.5, "batch_size": 4} | changes)


def batches(n=12, size=4):
    return list(torch.arange(n).split(size))


def trained(chosen, indices=None, model=None, loss=nn.functional.cross_entropy, **options):
    model = Linear() if model is None else model
    images, labels = data()
    generator = torch_generator(0, "augmentation")
    indices = batches() if indices is None else indices
    outcome = train(model, images, labels, indices, chosen, loss, INFO, generator, **options)
    return model, outcome


def slow_training(chosen, indices, rate=1.0, term=None):
    """Softmax regression in float64 with the gradient written out; returns W, losses and rates."""
    images, labels = data()
    pixels = (images.double().flatten(1) / 255 - 0.4) / 0.3
    weight, losses = Linear().weight.detach().double(), []
    for index in indices:
        probabilities = (pixels[index] @ weight.T).softmax(1)
        wanted = nn.functional.one_hot(labels[index], CLASSES).double()
        losses.append(float(-(wanted * probabilities.log()).sum(1).mean()))
        gradient = (probabilities - wanted).T @ pixels[index] / len(index)
        if chosen.clip_norm is not None:
            gradient = gradient * min(1.0, chosen.clip_norm / float(gradient.norm()))
        if term is not None:
            gradient = gradient + term(weight)
        weight = weight - chosen.learning_rate * rate * gradient
    return weight, losses


def close(a, b, tolerance=1e-5):
    return torch.allclose(a.double(), b.double(), rtol=tolerance, atol=tolerance)


def test_training_is_the_slow_loop():
    model, outcome = trained(settings(), batches() * 3)
    weight, losses = slow_training(settings(), batches() * 3)
    assert close(model.weight, weight)
    assert outcome.steps == 9
    assert outcome.loss == pytest.approx(sum(losses[6:]) / 3, rel=1e-5)  # the last epoch
    assert outcome.diverged_at is None


def test_clip_norm_limits_the_gradient():
    chosen = settings(clip_norm=0.05)
    model, _ = trained(chosen)
    assert close(model.weight, slow_training(chosen, batches())[0])
    wide, _ = trained(settings(clip_norm=1e3))
    assert torch.equal(wide.weight, trained(settings())[0].weight)


def test_gradient_term_joins_after_clipping():
    chosen = settings(clip_norm=0.05)

    def pull(parameters):
        for parameter in parameters:
            parameter.grad.add_(parameter.detach(), alpha=0.2)

    model, _ = trained(chosen, gradient_term=pull)
    expected, _ = slow_training(chosen, batches(), term=lambda weight: 0.2 * weight)
    assert close(model.weight, expected)


def test_training_may_end_after_a_step():
    seen = []

    def after_step(step):
        seen.append((step, model.weight.detach().clone()))
        return step == 2

    model = Linear()
    _, outcome = trained(settings(), batches() * 2, model, after_step=after_step)
    assert [step for step, _ in seen] == [1, 2]
    for step, weight in seen:
        expected, losses = slow_training(settings(), batches()[:step])
        assert close(weight, expected)
    assert torch.equal(model.weight, seen[-1][1])
    assert outcome.steps == 2
    assert outcome.loss == pytest.approx(sum(losses) / 2, rel=1e-5)
    assert outcome.rate_sum == pytest.approx(2 * 0.5)


@pytest.mark.parametrize(
    ("schedule", "total"),
    [
        ("constant", 4 * 0.5),
        ({"step": {"milestones": [0.5], "factor": 0.1}}, 2 * 0.5 + 2 * 0.05),
        ("cosine", 0.5 * (1 + 0.8535533906 + 0.5 + 0.1464466094)),
    ],
    ids=["constant", "step", "cosine"],
)
def test_rate_sum_is_that_of_the_schedule(schedule, total):
    _, outcome = trained(settings(schedule=schedule), batches(size=3))
    assert outcome.rate_sum == pytest.approx(total, rel=1e-8)
    _, decayed = trained(settings(schedule=schedule), batches(size=3), rate=0.9)
    assert decayed.rate_sum == pytest.approx(0.9 * total, rel=1e-8)


def breaking_at(step, factor):
    """A loss that is not finite from the given step (from 1) on."""
    count = 0

    def loss(logits, labels):
        nonlocal count
        count += 1
        value = nn.functional.cross_entropy(logits, labels)
        return value * factor if count >= step else value

    return loss


def test_divergence_names_the_first_step_without_a_finite_loss():
    for step, factor in ((1, math.inf), (2, math.nan), (5, math.nan)):
        _, outcome = trained(settings(), batches() * 2, loss=breaking_at(step, factor))
        assert outcome.diverged_at == step
        assert math.isnan(outcome.loss)
        assert outcome.steps == 6


def test_a_batch_of_one_that_a_model_does_not_take_is_told_of_its_client():
    model = nn.Sequential(Linear(), nn.BatchNorm1d(CLASSES))
    told = r"client 3: a batch of one sample: Expected more than 1 value per channel .*; choose "
    with pytest.raises(FedstageError, match=told):
        trained(settings(), batches(size=1), model, whose="client 3: ")
    with pytest.raises(ValueError, match="1D target must have size 1"):
        trained(settings(), model=nn.Sequential(Linear(), nn.Flatten(0)))


def cnn(norm="batch"):
    model = build(CnnSmall(name="cnn_small", width=4, hidden=8, norm=norm), (1, 8, 8), CLASSES)
    initialise(model, torch_generator(0, "weights"))
    return model


def test_targets_may_be_logits():
    images, _ = data()
    teacher = torch.randn(12, CLASSES, generator=torch_generator(0, "teacher"))
    model, seen = Linear(), []

    def loss(student, target):
        seen.append(target)
        return ((student - target) ** 2).mean()

    generator = torch_generator(0, "augmentation")
    train(model, images, teacher, batches(), settings(), loss, INFO, generator)
    assert torch.equal(torch.cat(seen), teacher)
