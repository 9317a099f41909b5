import time

import numpy as np
import pytest

from fedstage.data.partitions.dirichlet import apportion, assign, draw_counts
from fedstage.errors import FedstageError
from fedstage.settings.partitions import Dirichlet

TEN_CLASSES = np.random.default_rng(11).permutation(np.repeat(np.arange(10), 100))


def assigned(labels, clients, seed=0, **settings):
    chosen = Dirichlet(name="dirichlet", **settings)
    return assign(chosen, labels, clients, np.random.default_rng(seed), None)


def counts_of(labels, assigned_samples):
    """Samples [classes, clients]."""
    return np.stack([np.bincount(labels[own], minlength=10) for own in assigned_samples], axis=1)


def plain_assign(labels, clients, generator, alpha, mask, min_samples):
    """The procedure in plain Python, one sample and one client at a time."""
    while True:
        quotas = []
        held = [0] * clients
        for label in sorted(set(labels.tolist())):
            size = sum(1 for other in labels if other == label)
            open_clients = [
                j for j in range(clients) if not mask or held[j] < len(labels) / clients
            ]
            drawn = generator.dirichlet([alpha] * len(open_clients))
            below, quota = 0, [0] * clients
            for position, client in enumerate(open_clients):
                upto = round(float(sum(drawn[: position + 1]) / sum(drawn)) * size)
                quota[client] = upto - below
                below = upto
            held = [a + b for a, b in zip(held, quota, strict=True)]
            quotas.append((label, quota))
        if min(held) >= min_samples:
            break
    result = [[] for _ in range(clients)]
    for label, quota in quotas:
        queue = generator.permutation([i for i, other in enumerate(labels) if other == label])
        queue = queue.tolist()
        for client in range(clients):
            result[client] += queue[: quota[client]]
            queue = queue[quota[client] :]
        assert not queue
    return result


@pytest.mark.parametrize("mask", [True, False])
@pytest.mark.parametrize("alpha", [0.1, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_agrees_with_a_plain_implementation(alpha, mask, seed):
    labels = np.random.default_rng(seed).integers(0, 6, 311)
    expected = plain_assign(labels, 7, np.random.default_rng(seed), alpha, mask, 10)
    actual = assigned(labels, 7, seed, alpha=alpha, mask=mask, min_samples=10)
    assert [own.tolist() for own in actual] == expected


@pytest.mark.parametrize("alpha", [0.05, 0.5, 5.0])
def test_proportions_have_the_moments_of_the_dirichlet(alpha):
    clients, size, draws = 5, 100_000, 4000
    sizes = np.full(draws, size)
    counts = draw_counts(
        sizes, clients, alpha=alpha, mask=False, generator=np.random.default_rng(0)
    )
    share = counts / size
    variance = (clients - 1) / (clients**2 * (clients * alpha + 1))
    error = np.sqrt(variance / draws)
    np.testing.assert_allclose(share.mean(axis=0), 1 / clients, atol=5 * error)
    np.testing.assert_allclose(share.var(axis=0), variance, rtol=0.1)
    covariance = np.cov(share.T)[np.triu_indices(clients, 1)]
    np.testing.assert_allclose(covariance, -variance / (clients - 1), atol=0.1 * variance)


def test_mask_has_the_distribution_of_zeroing_and_renormalising():
    clients, sizes, alpha, draws = 4, np.array([100, 100, 100]), 0.5, 4000

    def zeroed(generator):
        counts = np.zeros((3, clients))
        for row in counts:
            proportions = generator.dirichlet(np.full(clients, alpha))
            proportions *= counts.sum(axis=0) < sizes.sum() / clients
            row += 100 * proportions / proportions.sum()
        return counts

    def drawn(generator):
        return draw_counts(sizes, clients, alpha=alpha, mask=True, generator=generator)

    def figures(draw, seed):
        generator = np.random.default_rng(seed)
        samples = np.stack([draw(generator) for _ in range(draws)])
        concentration = (samples.astype(float) ** 2).sum(axis=2)  # [draws, classes]
        smallest, largest = samples.sum(axis=1).min(axis=1), samples.sum(axis=1).max(axis=1)
        table = np.column_stack([concentration, smallest, largest])
        return table.mean(axis=0), table.std(axis=0) / np.sqrt(draws)

    mean, error = figures(drawn, 1)
    expected, expected_error = figures(zeroed, 2)
    deviation = np.abs(mean - expected) / np.hypot(error, expected_error)
    assert deviation.max() < 5, deviation


@pytest.mark.parametrize("mask", [True, False])
def test_huge_alpha_is_nearly_uniform(mask):
    counts = counts_of(TEN_CLASSES, assigned(TEN_CLASSES, 10, alpha=1e6, mask=mask))
    assert np.abs(counts - 10).max() <= 1


@pytest.mark.parametrize("mask", [True, False])
def test_tiny_alpha_gives_a_class_to_one_client(mask):
    settings = {"alpha": 1e-3, "mask": mask, "min_samples": 1}
    shares = [
        counts_of(TEN_CLASSES, assigned(TEN_CLASSES, 3, seed, **settings)).max(axis=1) / 100
        for seed in range(10)
    ]
    assert np.mean(shares) > 0.98


@pytest.mark.parametrize("alpha", [1e-5, 1e-100, 1e-300])
@pytest.mark.parametrize("mask", [True, False])
def test_proportions_that_underflow_still_give_whole_partitions(alpha, mask):
    for seed in range(20):
        generator = np.random.default_rng(seed)
        sizes = np.full(10, 100)
        counts = draw_counts(sizes, 5, alpha=alpha, mask=mask, generator=generator)
        assert counts.min() >= 0
        np.testing.assert_array_equal(counts.sum(axis=1), sizes)
        if mask:
            assert (counts.sum(axis=0) > 0).all()


def test_mask_gives_full_clients_no_later_class():
    violations = {True: 0, False: 0}
    for mask in violations:
        for seed in range(20):
            generator = np.random.default_rng(seed)
            sizes = np.full(10, 100)
            counts = draw_counts(sizes, 8, alpha=0.3, mask=mask, generator=generator)
            held_before = np.cumsum(counts, axis=0) - counts
            violations[mask] += int(((held_before >= 1000 / 8) & (counts > 0)).sum())
    assert violations[True] == 0
    assert violations[False] > 50


def test_mask_makes_sizes_more_even():
    spread = {}
    for mask in (True, False):
        own = [
            assigned(TEN_CLASSES, 8, seed, alpha=0.3, mask=mask, min_samples=1)
            for seed in range(20)
        ]
        spread[mask] = np.mean([np.std([len(x) for x in one]) for one in own])
    assert spread[True] < 0.75 * spread[False]


def test_every_client_gets_the_minimum():
    smallest = {}
    for minimum in (1, 25):
        own = [assigned(TEN_CLASSES, 20, s, alpha=0.3, min_samples=minimum) for s in range(10)]
        smallest[minimum] = min(len(samples) for one in own for samples in one)
    assert smallest[1] < 25 <= smallest[25]


def test_samples_of_a_class_are_shuffled_before_the_cut():
    labels = np.zeros(1000, dtype=np.int64)
    means = [assigned(labels, 2, seed, alpha=100.0)[0].mean() for seed in range(20)]
    # Each is the mean of some 500 of 1,000 indices: 499.5 +- 9.1; cut in order it would be 250.
    assert np.abs(np.array(means) - 499.5).max() < 60


def test_labels_need_not_be_consecutive():
    labels = np.array([3] * 50 + [90] * 50)
    own = assigned(labels, 2, alpha=10.0, min_samples=1)
    np.testing.assert_array_equal(np.sort(np.concatenate(own)), np.arange(100))


def test_apportion_is_whole_and_gives_nothing_to_proportion_zero():
    np.testing.assert_array_equal(apportion(10, np.array([0.25, 0.0, 0.5, 0.25])), [2, 0, 6, 2])
    # Ten times 0.1 is below 1 in floating point: nothing may be lost, nor go to the clients behind.
    counts = apportion(10**17, np.array([0.1] * 10 + [0.0, 0.0]))
    assert counts[10:].tolist() == [0, 0]
    assert counts.sum() == 10**17


def test_apportion_favours_neither_end():
    generator = np.random.default_rng(0)
    counts = np.stack([apportion(7, generator.dirichlet(np.full(5, 2.0))) for _ in range(8000)])
    # The share of each is 1.4 +- 1.0 samples.
    np.testing.assert_allclose(counts.mean(axis=0), 1.4, atol=0.06)


class Scripted:
    """A generator whose Dirichlet draws are given, the first ones first."""

    def __init__(self, *draws):
        self.draws = list(draws)
        self.permutation = np.random.default_rng(0).permutation

    def dirichlet(self, alpha):
        return np.array(self.draws.pop(0))


BAD_PROPORTIONS = [[np.nan, 1.0], [0.0, 0.0], [np.inf, 0.0]]


@pytest.mark.parametrize("bad", BAD_PROPORTIONS)
@pytest.mark.filterwarnings("error")
def test_a_draw_without_proportions_is_never_cut(bad):
    sizes = np.array([10, 10])
    generator = Scripted([0.5, 0.5], bad)
    assert draw_counts(sizes, 2, alpha=1.0, mask=False, generator=generator) is None


@pytest.mark.parametrize("bad", BAD_PROPORTIONS)
def test_a_draw_without_proportions_is_rejected_and_repeated(bad):
    labels = np.zeros(10, dtype=np.int64)
    generator = Scripted(bad, [0.2, 0.8])
    chosen = Dirichlet(name="dirichlet", alpha=1.0, min_samples=1)
    own = assign(chosen, labels, 2, generator, None)
    assert [len(samples) for samples in own] == [2, 8]
    assert generator.draws == []


def test_a_rejected_draw_counts_as_a_draw():
    chosen = Dirichlet(name="dirichlet", alpha=1.0, min_samples=1, max_draws=2)
    generator = Scripted([np.nan, np.nan], [0.0, 0.0], [0.5, 0.5])
    with pytest.raises(FedstageError, match=r"partition.max_draws = 2"):
        assign(chosen, np.zeros(10, dtype=np.int64), 2, generator, None)


def test_alpha_too_large_for_floating_point_ends_in_an_error():
    with pytest.raises(FedstageError, match=r"partition.max_draws = 3"):
        assigned(TEN_CLASSES, 10, alpha=1e308, max_draws=3)


def test_500_clients_with_too_large_a_minimum_end_in_an_error_that_helps():
    labels = np.repeat(np.arange(100), 500)  # as CIFAR-100
    started = time.perf_counter()
    with pytest.raises(FedstageError) as raised:
        assigned(labels, 500, alpha=0.1, min_samples=90, max_draws=20)
    assert time.perf_counter() - started < 5
    message = str(raised.value)
    assert "\n" not in message
    for part in (
        "partition.max_draws = 20:",
        "500 clients",
        "partition.min_samples = 90 samples",
        "raise partition.alpha = 0.1",
        "lower partition.min_samples",
        "fewer clients",
        "raise partition.max_draws",
    ):
        assert part in message


@pytest.mark.parametrize(("minimum", "sizes"), [(20, [20, 80]), (21, [50, 50])])
def test_the_first_draw_that_has_the_minimum_is_taken(minimum, sizes):
    chosen = Dirichlet(name="dirichlet", alpha=1.0, min_samples=minimum)
    generator = Scripted([0.1, 0.9], [0.2, 0.8], [0.5, 0.5])
    own = assign(chosen, np.zeros(100, dtype=np.int64), 2, generator, None)
    assert [len(samples) for samples in own] == sizes


def test_error_tells_the_smallest_client_of_the_best_draw():
    labels = np.zeros(100, dtype=np.int64)
    chosen = Dirichlet(name="dirichlet", alpha=1.0, min_samples=40, max_draws=3)
    generator = Scripted([0.1, 0.9], [0.63, 0.37], [0.2, 0.8])
    with pytest.raises(FedstageError, match="smallest client of the best draw has 37"):
        assign(chosen, labels, 2, generator, None)


def test_a_minimum_that_the_samples_cannot_give_is_refused_without_drawing():
    chosen = Dirichlet(name="dirichlet", alpha=1.0, min_samples=26)
    with pytest.raises(
        FedstageError, match=r"partition.min_samples = 26: at most 25, .* 4 clients"
    ):
        assign(chosen, np.zeros(100, dtype=np.int64), 4, Scripted(), None)
