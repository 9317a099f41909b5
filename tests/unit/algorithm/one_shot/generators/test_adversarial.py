"""DENSE and Co-Boosting: their common limit, and their losses."""

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, softmax

from fedstage.algorithm.one_shot.generators import of_server
from fedstage.algorithm.one_shot.generators.adversarial import synthesise
from fedstage.algorithm.one_shot.generators.world import Made, World
from fedstage.settings.generators import CoBoosting, Dense
from fedstage.settings.numerics import Numerics
from fedstage.settings.server import Server

INFO = {"shape": [1, 8, 8], "classes": 3, "mean": [0.3], "std": [0.2]}
SMALL = {"latent": 4, "width": 2, "steps": 3, "batch_size": 6, "learning_rate": 0.01}
SERVER = Server(
    epochs=3, batch_size=4, learning_rate=0.05, momentum=0.9, temperature=2.0,
    schedule={"name": "cosine"},
)  # fmt: skip
KEY = (5, "a")
DENSE = Dense(name="dense", adversarial=0.5, **SMALL)
BOOSTING = CoBoosting(name="coboosting", clip_norm=0.01, temperature=3.0, **SMALL)


def network(seed):
    torch.manual_seed(seed)
    layers = nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(), nn.Linear(108, 3)
    model = nn.Sequential(*layers)
    with torch.no_grad():
        model(torch.randn(20, 1, 8, 8))  # running statistics
    return model


def run(settings, server=SERVER, models=2):
    student = network(9)
    world = World([network(seed) for seed in range(models)], student, INFO, Numerics(device="cpu"))
    made = synthesise(settings, of_server(settings, INFO), world, server, KEY)
    return made, student.state_dict(), world


@pytest.mark.parametrize("settings", [DENSE, BOOSTING], ids=lambda one: one.name)
def test_clients_models_stay_as_they_are(settings):
    _, _, world = run(settings)
    for seed, teacher in enumerate(world.teachers):
        expected = network(seed).state_dict()
        assert all(
            torch.equal(value, expected[name]) for name, value in teacher.state_dict().items()
        )


@pytest.mark.parametrize("settings", [DENSE, BOOSTING], ids=lambda one: one.name)
def test_each_epoch_adds_a_batch_to_the_pool(settings):
    made, _, _ = run(settings)
    assert made.images.pixels.shape == (3 * 6, 1, 8, 8)
    assert made.images.labels.shape == (3 * 6,)


def test_coboosting_without_its_three_parts_is_dense_without_norms_and_mask():
    plain = {"adversarial": 0.7, "temperature": 2.0} | SMALL
    dense = Dense(name="dense", batch_norm=0.0, only_disagreeing=False, **plain)
    boosting = CoBoosting(name="coboosting", hardness=0.0, step=0.0, weight_step=0.0, **plain)
    one, other = run(dense), run(boosting)
    assert torch.equal(one[0].images.pixels, other[0].images.pixels)
    assert torch.equal(one[0].weights, other[0].weights)
    assert all(torch.equal(value, other[1][name]) for name, value in one[1].items())


def test_weights_stay_between_0_and_1():
    wild = BOOSTING.model_copy(update={"weight_step": 0.9})
    weights = run(wild)[0].weights
    assert ((weights >= 0) & (weights <= 1)).all()


def test_the_global_generator_is_left_alone():
    student, teachers = network(9), [network(0)]
    before = torch.get_rng_state()
    world = World(teachers, student, INFO, Numerics(device="cpu"))
    synthesise(BOOSTING, of_server(BOOSTING, INFO), world, SERVER, KEY)
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("settings", [DENSE, BOOSTING], ids=lambda one: one.name)
def test_derivatives_are_differences(settings):
    generator = torch.Generator().manual_seed(1)
    teacher, student = (
        torch.randn(5, 3, generator=generator, dtype=torch.float64).requires_grad_()
        for _ in range(2)
    )
    labels = torch.tensor([0, 1, 2, 0, 1])
    # Hardness has no derivative by itself.
    chosen = settings.model_copy(update={"hardness": 0.0} if settings is BOOSTING else {})
    loss = of_server(chosen, INFO).loss

    def of(teacher, student, statistics):
        return loss(Made(teacher, student, labels, statistics))

    statistics = torch.tensor([2.0, 3.0], dtype=torch.float64, requires_grad=True)
    at = (teacher, student, statistics) if settings is DENSE else (teacher, student)
    rest = () if settings is DENSE else (statistics.detach(),)
    assert torch.autograd.gradcheck(lambda *values: of(*values, *rest), at)


def test_hard_samples_count_more_and_their_weight_is_fixed():
    teacher = torch.tensor([[4.0, 0.0, 0.0], [0.0, 0.0, 0.0]], requires_grad=True)
    loss = of_server(BOOSTING.model_copy(update={"adversarial": 0.0}), INFO).loss
    made = Made(teacher, teacher.detach(), torch.tensor([0, 0]), torch.empty(0))
    p = softmax(teacher, 1)[:, 0].detach()
    expected = ((1 - p) * cross_entropy(teacher, made.labels, reduction="none")).mean()
    torch.testing.assert_close(loss(made), expected)
    (one,) = torch.autograd.grad(loss(made), teacher)
    (other,) = torch.autograd.grad(expected, teacher)
    torch.testing.assert_close(one, other)


def test_distances_from_norms_are_a_mean_as_published_and_a_sum_as_released():
    logits = torch.zeros(2, 3)
    made = Made(logits, logits, torch.tensor([0, 1]), torch.tensor([2.0, 6.0]))
    for norms, expected in (("mean", 4.0), ("sum", 8.0)):
        chosen = DENSE.model_copy(update={"norms": norms, "batch_norm": 0.5})
        loss = of_server(chosen, INFO).loss(made) - cross_entropy(logits, made.labels)
        assert float(loss) == pytest.approx(0.5 * expected)
