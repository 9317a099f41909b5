"""FedFTG: what a client weighs, the losses of generator and student, and what stays as it is."""

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from fedstage.algorithm.global_trainers.data_free import (
    Classroom,
    counts_of,
    drawn_batches,
    each_distance,
    fine_tune,
    new_generator,
    shares_of,
)
from fedstage.algorithm.global_trainers.distillation import distillation_loss
from fedstage.algorithm.global_trainers.generators import Made, generator_module
from fedstage.algorithm.global_trainers.generators.fedftg import likeness
from fedstage.errors import FedstageError
from fedstage.settings.generators import FedFtg, FedFtgAsReleased
from fedstage.settings.numerics import Numerics
from fedstage.settings.server import Server

INFO = {"shape": [1, 8, 8], "classes": 4, "mean": [0.3], "std": [0.2]}
SMALL = {"latent": 3, "width": 2, "student_steps": 2, "learning_rate": 0.01}
PUBLISHED = FedFtg(name="fedftg", **SMALL)
RELEASED = FedFtgAsReleased(name="fedftg_as_released", **SMALL)
BOTH = pytest.mark.parametrize("settings", [PUBLISHED, RELEASED], ids=lambda one: one.name)
SERVER = Server(steps=5, batch_size=6, learning_rate=0.05, momentum=0.9, temperature=2.0)
#: Nobody has class 2, and one client alone has class 3.
COUNTS = torch.tensor([[4, 1, 0, 0], [1, 3, 0, 5], [5, 0, 0, 0]])
KEY = (5, "a")


def network(seed):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Conv2d(1, 3, 3), nn.Tanh(), nn.Flatten(), nn.Linear(108, 4))


def classroom():
    models = [network(seed).eval().requires_grad_(False) for seed in range(3)]
    return Classroom(network(9), models, COUNTS, INFO, Numerics(device="cpu"))


def test_an_average_has_the_samples_of_all_whose_models_it_is():
    counts = {1: {0: 4, 3: 1}, 2: {}, 5: {0: 2}}
    assert counts_of([(1, 5), (2,)], counts, 4).tolist() == [[6, 0, 0, 1], [0, 0, 0, 0]]
    with pytest.raises(FedstageError, match="no member has a sample"):
        counts_of([(2,), ()], counts, 4)


def generator(settings):
    return new_generator(settings, INFO, 7)


def test_classes_are_drawn_in_proportion_and_those_of_nobody_never():
    server = SERVER.model_copy(update={"batch_size": 2000})
    drawn = torch.cat([y for _, y in drawn_batches(classroom(), PUBLISHED, server, 5, KEY)])
    counts = torch.bincount(drawn, minlength=4)
    assert len(drawn) == 3 * 2000  # of 5 steps, 2 a batch
    assert counts[2] == 0
    assert (counts / counts.sum()).tolist() == pytest.approx([10 / 19, 4 / 19, 0, 5 / 19], abs=0.03)


@BOTH
def test_student_and_generator_learn_and_clients_models_stay(settings):
    room, net = classroom(), generator(settings)
    before = torch.get_rng_state()
    loss = fine_tune(room, net, settings, SERVER, KEY, "student")
    assert torch.equal(before, torch.get_rng_state())
    assert loss > 0
    for seed, teacher in enumerate(room.teachers):
        assert_equal(teacher, network(seed))
    for learnt, fresh in ((room.student, network(9)), (net, generator(settings))):
        pairs = zip(learnt.parameters(), fresh.parameters(), strict=True)
        assert all(not torch.equal(one, other) for one, other in pairs)
    again = classroom()
    fine_tune(again, generator(settings), settings, SERVER, KEY, "student")
    assert_equal(again.student, room.student)


def assert_equal(one, other):
    pairs = zip(one.parameters(), other.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)


@pytest.mark.parametrize(
    ("settings", "turns"),
    [(PUBLISHED, [[0, 1, 2]] * 2), (RELEASED, [[0], [1], [2]] * 2)],
    ids=["published", "released"],
)
def test_a_step_is_of_all_clients_or_as_released_of_one(settings, turns):
    twice = settings.model_copy(update={"steps": 2})
    assert [list(one) for one in generator_module(twice).turns(twice, 3)] == turns


# --- losses ---------------------------------------------------------------------------------------


def made(members=3):
    torch.manual_seed(3)

    def drawn(*shape):
        return torch.randn(*shape, dtype=torch.float64).requires_grad_()

    labels = torch.tensor([0, 3, 1, 0, 1])
    shares = shares_of(COUNTS).double()[:members, labels]
    pixels, student, said = drawn(5, 1, 3, 3), drawn(5, 4), drawn(members, 5, 4)
    return Made(torch.randn(5, 3).double(), pixels, labels, student, said, shares, 3)


def test_each_sample_has_the_divergence_that_other_students_have_on_average():
    torch.manual_seed(0)
    student, teacher = torch.randn(2, 5, 4)
    for changes in ({}, {"tau_squared": False, "sharpening": 3.0}):
        server = SERVER.model_copy(update=changes)
        expected = distillation_loss(server)(student, teacher)
        torch.testing.assert_close(each_distance(server)(student, teacher).mean(), expected)


def test_as_released_the_cross_entropy_forgets_whose_sample_it_is():
    example, plain = made(1), {"diversity": 0.0}
    alone = Made(**vars(example) | {"student": example.members[0]})  # no distance
    (said,), (share,) = example.members, example.shares
    each = cross_entropy(said, example.labels, reduction="none")
    losses = {}
    for settings in (PUBLISHED, RELEASED):
        chosen = settings.model_copy(update=plain)
        module = generator_module(chosen)
        losses[settings.name] = module.loss(chosen, alone, each_distance(SERVER))
    torch.testing.assert_close(losses["fedftg"], (share * each).mean())
    torch.testing.assert_close(losses["fedftg_as_released"], share.mean() * each.mean())


def test_images_are_less_alike_the_further_they_are_where_noise_is():
    latent, pixels = torch.randn(4, 3), torch.rand(4, 1, 2, 2)
    assert likeness(pixels[:1].expand(4, -1, -1, -1), latent) == 1
    values = [float(likeness(pixels * scale, latent)) for scale in (0.5, 1, 2)]
    assert values == sorted(values, reverse=True)
    a, b = pixels.flatten(1), latent
    pairs = [(i, j) for i in range(4) for j in range(4)]
    apart = [(a[i] - a[j]).abs().mean() * (b[i] - b[j]).square().mean() for i, j in pairs]
    torch.testing.assert_close(likeness(pixels, latent), (-torch.stack(apart).mean()).exp())


@pytest.mark.parametrize(
    ("settings", "server", "recipe"),
    [
        (
            PUBLISHED,
            SERVER.model_copy(update={"learning_rate": 1e38}),
            "student: the loss is not finite; lower server.learning_rate = 1e+38",
        ),
        (
            PUBLISHED.model_copy(update={"diversity": float("nan")}),
            SERVER,
            "student: the generator's loss is not finite; lower generator.learning_rate = 0.01",
        ),
    ],
    ids=["student", "generator"],
)
def test_divergence_is_one_line_that_says_whose(settings, server, recipe):
    with pytest.raises(FedstageError) as caught:
        fine_tune(classroom(), generator(settings), settings, server, KEY, "student")
    assert str(caught.value) == recipe
