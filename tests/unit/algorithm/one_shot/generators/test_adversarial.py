"""DENSE and Co-Boosting against plain code, their common limit, and their losses."""

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, log_softmax, softmax

from fedstage.algorithm.one_shot.generators import of_server
from fedstage.algorithm.one_shot.generators.adversarial import Made, World, synthesise
from fedstage.models.image_generator import new_image_generator
from fedstage.randomness import torch_generator
from fedstage.settings.generators import CoBoosting, Dense
from fedstage.settings.numerics import Numerics
from fedstage.settings.server import Server
from fedstage.training.batches import all_batches, public_batches

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


def kl(p, q, t):
    """T^2 KL(p || q) of each sample."""
    p, q = log_softmax(p / t, 1), log_softmax(q / t, 1)
    return t * t * (p.exp() * (p - q)).sum(1)


def reference(settings, epochs=3):
    """Both methods from top to bottom, as their papers and released code say."""
    boosting = settings.name == "coboosting"
    clients, student = [network(0).eval(), network(1).eval()], network(9)
    w = torch.tensor([0.5, 0.5])
    sgd = torch.optim.SGD(student.parameters(), lr=0.05, momentum=0.9)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(sgd, T_max=epochs)
    pool_x, pool_y = torch.empty(0, 1, 8, 8), torch.empty(0, dtype=torch.int64)

    def scaled(x):
        return (x - 0.3) / 0.2

    def ensemble(x, w):
        return sum(weight * client(x) for weight, client in zip(w, clients, strict=True))

    for epoch in range(epochs):
        key = (*KEY, "batch", epoch)
        net = new_image_generator((1, 8, 8), 4, 2, torch_generator(*key, "generator"))
        drawn = torch_generator(*key, "latent")
        z = torch.randn(6, 4, generator=drawn).requires_grad_()
        y = torch.randint(0, 3, (6,), generator=drawn)
        adam = torch.optim.Adam([*net.parameters(), z], lr=0.01, betas=(0.5, 0.999))
        best = float("inf")
        student.eval()
        for _ in range(3):
            x = net(z)
            t, s = ensemble(scaled(x), w), student(scaled(x))
            if boosting:
                p = softmax(t, 1)[torch.arange(6), y].detach()
                loss = ((1 - p) * cross_entropy(t, y, reduction="none")).mean()
                loss = loss - kl(t, s, 3.0).mean()
            else:
                away = kl(t, s, 1.0) * (t.argmax(1) != s.argmax(1))
                loss = cross_entropy(t, y) - 0.5 * away.mean()
                for client in clients:
                    maps, norm = client[0](scaled(x)), client[1]
                    mean = maps.mean((0, 2, 3)) - norm.running_mean
                    variance = maps.var((0, 2, 3), unbiased=False) - norm.running_var
                    loss = loss + (mean.pow(2).sum().sqrt() + variance.pow(2).sum().sqrt()) / 2
            if loss.item() < best:
                best, kept = loss.item(), x.detach()
            adam.zero_grad()
            loss.backward()
            if boosting:
                nn.utils.clip_grad_norm_(net.parameters(), 0.01)
            adam.step()
        if boosting and epoch:
            order = torch.randperm(len(pool_y), generator=torch_generator(*KEY, "weights", epoch))
            for batch in all_batches(len(pool_y), 4):
                v = w.clone().requires_grad_()
                x, labels = scaled(pool_x[order[batch]]), pool_y[order[batch]]
                cross_entropy(ensemble(x, v), labels).backward()
                w = (w - 0.01 * 0.99**epoch * v.grad.sign()).clamp(0, 1)
        pool_x = torch.cat([pool_x, (kept * 255).round() / 255])
        pool_y = torch.cat([pool_y, y])
        student.train()
        generator = torch_generator(*KEY, "student", epoch)
        for batch in public_batches(len(pool_y), 4, len(pool_y) // 4, generator):
            x = scaled(pool_x[batch])
            if boosting:
                x.requires_grad_()
                said = softmax(ensemble(x, w) / 4, 1)
                u = torch.empty(said.shape).uniform_(-1, 1, generator=generator)
                (u * said).sum().backward()
                x = (x + 8 / 255 / 0.2 * x.grad.sign()).detach()
            loss = kl(ensemble(x, w).detach(), student(x), 2.0).mean()
            sgd.zero_grad()
            loss.backward()
            sgd.step()
        cosine.step()
    return pool_x, pool_y, w, student.state_dict()


@pytest.mark.parametrize("settings", [DENSE, BOOSTING], ids=lambda one: one.name)
def test_a_student_the_images_and_the_weights_are_those_of_plain_code(settings):
    made, student, world = run(settings)
    pool_x, pool_y, weights, expected = reference(settings)
    assert torch.equal(made.images.labels, pool_y)
    assert made.images.pixels.shape == (3 * 6, 1, 8, 8)
    assert (made.images.pixels.float() - pool_x * 255).abs().max() <= 1  # rounded the other way
    torch.testing.assert_close(made.weights, weights)
    assert (made.weights != 0.5).any() == (settings.name == "coboosting")
    for name, value in expected.items():
        torch.testing.assert_close(student[name], value, atol=1e-3, rtol=1e-3)
    for seed, teacher in enumerate(world.teachers):
        for one, other in zip(teacher.parameters(), network(seed).parameters(), strict=True):
            assert torch.equal(one, other)


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

    statistics = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    at = (teacher, student, statistics) if settings is DENSE else (teacher, student)
    rest = () if settings is DENSE else (statistics.detach(),)
    assert torch.autograd.gradcheck(lambda *values: of(*values, *rest), at)


def test_hard_samples_count_more_and_their_weight_is_fixed():
    teacher = torch.tensor([[4.0, 0.0, 0.0], [0.0, 0.0, 0.0]], requires_grad=True)
    loss = of_server(BOOSTING.model_copy(update={"adversarial": 0.0}), INFO).loss
    made = Made(teacher, teacher.detach(), torch.tensor([0, 0]), torch.zeros(()))
    p = softmax(teacher, 1)[:, 0].detach()
    expected = ((1 - p) * cross_entropy(teacher, made.labels, reduction="none")).mean()
    torch.testing.assert_close(loss(made), expected)
    (one,) = torch.autograd.grad(loss(made), teacher)
    (other,) = torch.autograd.grad(expected, teacher)
    torch.testing.assert_close(one, other)
