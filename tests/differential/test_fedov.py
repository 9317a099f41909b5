"""FedOV's clients against the plain reference over five steps, attacked outliers included.

An attack takes signs of gradients, so that a difference of rounding becomes one of whole steps, of
1e-5 to 1e-3 in the weights after five steps in single precision. There are two reasons, and neither
is a difference of the programs:

- a gradient is about 0. In double precision all signs are the same, and so are the weights.
- max pooling has a tie: destroyed images have even parts, where the values that it compares are
  equal but for rounding, in double precision as well. Which of them passes the gradient on is then
  chance, and the gradients that turn are as large as any. Noise has no even parts; a network that
  takes means has no ties.
"""

import pytest
import torch
from reference.fedov import descend, loss_of
from torch import nn
from torch.nn.functional import cross_entropy

from fedstage.algorithm.one_shot.outliers import outliers
from fedstage.algorithm.one_shot.unknown_class import Means, objective
from fedstage.randomness import torch_generator
from fedstage.settings.one_shot_clients import Attack, Unknown
from fedstage.training.passes import PLAIN

STEPS, CLASSES, RATE, DEVIATION = 5, 4, 0.2, 0.4
POOLING = {"noise": nn.MaxPool2d(2), "corruptions": nn.AvgPool2d(2)}


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    torch.set_num_threads(1)


def network(pooling):
    torch.manual_seed(0)
    body = nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), pooling, nn.Flatten()
    return nn.Sequential(*body, nn.Linear(64, CLASSES + 1)).double()


def samples():
    generator = torch.Generator().manual_seed(1)
    images = torch.randn(100, 1, 8, 8, generator=generator, dtype=torch.float64)
    return images, torch.randint(0, CLASSES, (100,), generator=generator)


def drawn(settings, images, generator):
    """Return what the package draws in a step, in its order."""
    made = outliers(settings.outliers, images, generator)
    share = float(torch.rand((), generator=generator))
    return made, share, torch.randperm(len(images), generator=generator)


@pytest.mark.parametrize("source", POOLING)
def test_five_steps_on_attacked_outliers_are_the_same(source):
    attack = Attack(steps=2, step=0.05)
    settings = Unknown(outliers={"name": source}, attack=attack, second=0.7, mixed=0.5)
    unit = torch.tensor(1 / DEVIATION, dtype=torch.float64)
    of_model = objective(
        settings, Means(cross_entropy, PLAIN, torch_generator(0, "outliers"), unit)
    )
    generator = torch_generator(0, "outliers")
    (images, labels), pooling = samples(), POOLING[source]
    mine, theirs = network(pooling), network(pooling)
    step = attack.step / DEVIATION
    for _ in range(STEPS):
        descend(theirs, of_model(theirs, images, labels), RATE)
        given = drawn(settings, images, generator)
        own = loss_of(
            mine, images, labels, *given, attack.steps, step, settings.second, settings.mixed
        )
        descend(mine, own, RATE)
    for one, other in zip(mine.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)
