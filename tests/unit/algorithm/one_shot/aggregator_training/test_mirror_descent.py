"""FedBoost: weights in the simplex, learnt over rounds with some of the members each."""

import pytest
import torch

from fedstage.algorithm.one_shot.aggregator_training import Samples, Task, mirror_descent, trainer
from fedstage.algorithm.one_shot.aggregators import combination
from fedstage.errors import FedstageError
from fedstage.randomness import torch_generator
from fedstage.settings.aggregators import MirrorDescent, Simplex

M, C = 5, 4
SIMPLEX = Simplex(name="simplex")
SIZES = {0: 20, 1: 7, 3: 40}


def samples_of(size, seed, members=M):
    """Labelled samples: the last member is right about most, the others say noise."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(C, (size,), generator=generator)
    logits = torch.randn(members, size, C, generator=generator)
    logits[-1, torch.arange(size), labels] += 2
    return Samples(logits, labels)


def settings_of(**changes):
    return MirrorDescent.model_validate({"name": "mirror_descent", "rounds": 6} | changes)


def trained(samples=None, seed=0, **changes):
    samples = {c: samples_of(size, c) for c, size in SIZES.items()} if samples is None else samples
    count = len(next(iter(samples.values())).logits)
    start = {"weights": torch.full((count,), 1 / count)}
    task = Task(combination(SIMPLEX), start, samples, seed, tuple(range(count)))
    settings = settings_of(**changes)
    return trainer(settings).train(settings, task)


def weights(**changes):
    return trained(**changes).parameters["weights"]


@pytest.mark.parametrize("few", [{}, {"predictors": 2}, {"predictors": 2, "sampling": "weights"}])
def test_weights_stay_in_the_simplex_and_find_the_best_member(few):
    done = trained(rounds=80, learning_rate=0.1, **few)
    for one in (*done.kept.values(), done.parameters):
        assert one["weights"].dtype == torch.float32
        assert bool((one["weights"] >= 0).all())
        assert float(one["weights"].sum()) == pytest.approx(1)
    assert int(done.parameters["weights"].argmax()) == M - 1
    assert done.parameters["weights"][-1] > 0.3


def test_with_all_members_a_round_is_a_step_of_exponentiated_gradient():
    samples = {c: samples_of(size, c) for c, size in SIZES.items()}
    a = torch.full((M,), 1 / M, dtype=torch.float64, requires_grad=True)
    loss = sum(
        -(a @ own.logits.double().softmax(2)[:, torch.arange(len(own)), own.labels]).log().sum()
        for own in samples.values()
    ) / sum(SIZES.values())
    (slope,) = torch.autograd.grad(loss, a)
    expected = a.detach() * (-0.7 * slope).exp()
    found = trained(samples, rounds=1, learning_rate=0.7)
    assert torch.allclose(
        found.parameters["weights"].double(), expected / expected.sum(), atol=1e-6
    )
    assert found.rounds[0].loss == pytest.approx(float(loss.detach()))


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("sampling", ["uniform", "weights"])
def test_members_are_drawn_with_their_chances(count, sampling):
    mixed = torch.tensor([0.6, 0.3, 0.07, 0.03, 0.0], dtype=torch.float64)
    chances = mirror_descent.inclusion(settings_of(predictors=count, sampling=sampling), mixed)
    assert float(chances.sum()) == pytest.approx(count)
    assert bool((chances <= 1).all())
    assert bool((chances >= 0.1 * count / M - 1e-12).all())
    assert bool((chances[:-1] >= chances[1:]).all())
    drawn = torch.zeros(M)
    for seed in range(600):
        positions = mirror_descent.draw(chances, torch_generator(seed, "t"))
        assert len(positions) == count
        drawn[positions] += 1 / 600
    assert torch.allclose(drawn.double(), chances, atol=0.08)


def test_only_members_that_a_client_has_not_are_fetched_and_each_once():
    done = trained(predictors=2, rounds=40)
    fetched = torch.zeros(M)
    for one in done.rounds:
        assert one.sampled.coordinates == 2 * len(SIZES)
        for position, count in one.sampled.fetched.items():
            fetched[position] += count
    others = [len(SIZES) - (client in SIZES) for client in range(M)]  # each client has its own
    assert fetched.tolist() == others
    first = trained(rounds=1).rounds[0].sampled
    assert sum(first.fetched.values()) == M * len(SIZES) - len(SIZES)


def test_a_rate_that_is_too_high_is_told_in_one_line():
    with pytest.raises(FedstageError, match=r"learning_rate = 100\.0") as caught:
        trained(rounds=50, learning_rate=100.0, predictors=1)
    assert "\n" not in str(caught.value)
