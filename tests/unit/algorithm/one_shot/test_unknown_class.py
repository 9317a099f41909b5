"""The loss of clients that learn an unknown class (FedOV)."""

import math

import pytest
import torch
from torch.nn.functional import cross_entropy

from fedstage.algorithm.one_shot import unknown_class
from fedstage.algorithm.one_shot.unknown_class import Means, objective
from fedstage.models.initialisation import initialise
from fedstage.models.loading import build
from fedstage.randomness import torch_generator
from fedstage.settings.models import CnnSmall
from fedstage.settings.one_shot_clients import Attack, Unknown
from fedstage.training.images import unit_of
from fedstage.training.passes import PLAIN

CLASSES, BATCH = 3, 6
NONE = {"outliers": None, "attack": None, "second": 0.0, "mixed": 0.0}


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    torch.set_num_threads(1)  # as stages do; more only cost time on tensors this small


def network(norm="none", dtype=torch.float64):
    settings = CnnSmall(name="cnn_small", width=2, hidden=5, norm=norm, more_outputs=1)
    model = build(settings, (1, 8, 8), CLASSES)
    initialise(model, torch_generator(0, "weights"))
    return model.to(dtype).train()


def batch(dtype=torch.float64):
    generator = torch_generator(0, "data")
    pixels = torch.randn(BATCH, 1, 8, 8, generator=generator, dtype=dtype)
    return pixels, torch.tensor([0, 1, 2, 0, 1, 1])


def means(seed=0, unit=1.0):
    generator = torch_generator(seed, "outliers")
    return Means(cross_entropy, PLAIN, generator, torch.tensor(unit, dtype=torch.float64))


def loss_of(settings, model, seed=0):
    of_model = objective(Unknown.model_validate(settings), means(seed))
    return of_model(model, *batch())


def plain(model):
    pixels, labels = batch()
    return cross_entropy(model(pixels), labels)


# --- its terms ------------------------------------------------------------------------------------


def test_outliers_are_of_the_unknown_class_once_plain_and_once_attacked():
    model = network()
    unknown = torch.full((BATCH,), CLASSES)
    with torch.no_grad():
        first = unknown_class.outliers(Unknown().outliers, batch()[0], means().generator)
    alone = loss_of(NONE | {"outliers": "corruptions"}, model)
    expected = plain(model) + cross_entropy(model(first), unknown)
    assert alone.item() == pytest.approx(expected.item())
    attack = Attack(step=0.01)
    both = loss_of(NONE | {"outliers": "corruptions", "attack": {"step": 0.01}}, model)
    changed = unknown_class.attacked(attack, model, first, means())
    expected = expected + cross_entropy(model(changed), unknown)
    assert both.item() == pytest.approx(expected.item())


def test_second_is_the_loss_of_the_unknown_among_all_classes_but_the_label():
    model, (pixels, labels) = network(), batch()
    rows = model(pixels).tolist()
    total = 0.0
    for row, label in zip(rows, labels.tolist(), strict=True):
        left = [value for place, value in enumerate(row) if place != label]
        total -= row[-1] - math.log(sum(map(math.exp, left)))
    found = loss_of(NONE | {"second": 0.3}, model) - plain(model)
    assert found.item() == pytest.approx(0.3 * total / BATCH)


def test_mixed_are_pairs_of_different_classes():
    model, (pixels, labels) = network(), batch()
    generator = means().generator
    share = float(torch.rand((), generator=generator))
    other = torch.randperm(BATCH, generator=generator)
    said = model(pixels)
    pairs = [(a, b) for a, b in enumerate(other.tolist()) if labels[a] != labels[b]]
    assert 0 < len(pairs) < BATCH
    mixed = torch.stack([share * said[a] + (1 - share) * said[b] for a, b in pairs])
    expected = cross_entropy(mixed, torch.full((len(pairs),), CLASSES))
    found = loss_of(NONE | {"mixed": 0.5}, model) - plain(model)
    assert found.item() == pytest.approx(0.5 * expected.item())


# --- the attack -----------------------------------------------------------------------------------


def unknown_loss(model, pixels):
    with torch.no_grad():
        return float(cross_entropy(model(pixels), torch.full((len(pixels),), CLASSES)))


def test_an_attack_makes_outliers_look_known_within_its_reach():
    model, (pixels, _) = network(), batch()
    found = unknown_class.attacked(Attack(steps=5, step=0.02), model, pixels, means(unit=2.0))
    assert unknown_loss(model, found) > unknown_loss(model, pixels)
    moved = (found - pixels).abs()
    assert 0.04 <= float(moved.max()) <= 0.2 + 1e-9
    near = Attack(steps=5, step=0.02, radius=0.03)
    bound = unknown_class.attacked(near, model, pixels, means(unit=2.0))
    assert float((bound - pixels).abs().max()) == pytest.approx(0.06)


def test_samples_and_outliers_are_one_batch_of_batch_normalisation():
    model = network(norm="batch")
    loss_of({}, model)
    assert int(model.norm1.num_batches_tracked) == 1


def test_a_step_is_of_pixels_from_black_to_white():
    info = {"mean": [0.5, 0.5], "std": [0.25, 0.5]}
    unit = unit_of(torch.zeros(1, 2, 4, 4, dtype=torch.uint8), info)
    assert unit.flatten().tolist() == [4.0, 2.0]
    assert float(unit_of(torch.zeros(3, 5), info)) == 1.0
