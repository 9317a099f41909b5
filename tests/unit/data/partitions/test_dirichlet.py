import numpy as np
import pytest

from fedstage.data.partitions.dirichlet import apportion, assign, draw_counts
from fedstage.errors import FedstageError
from fedstage.settings.partitions import Dirichlet

TEN_CLASSES = np.random.default_rng(11).permutation(np.repeat(np.arange(10), 100))


def assigned(labels, clients, seed=0, **settings):
    chosen = Dirichlet(name="dirichlet", **settings)
    return assign(chosen, labels, clients, np.random.default_rng(seed), None)


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


def test_apportion_is_whole_and_gives_nothing_to_proportion_zero():
    np.testing.assert_array_equal(apportion(10, np.array([0.25, 0.0, 0.5, 0.25])), [2, 0, 6, 2])
    # Ten times 0.1 is below 1 in floating point: nothing may be lost, nor go to the clients behind.
    counts = apportion(10**17, np.array([0.1] * 10 + [0.0, 0.0]))
    assert counts[10:].tolist() == [0, 0]
    assert counts.sum() == 10**17


class Scripted:
    """A generator whose Dirichlet draws are given, the first ones first."""

    def __init__(self, *draws):
        self.draws = list(draws)
        self.permutation = np.random.default_rng(0).permutation

    def dirichlet(self, alpha):
        return np.array(self.draws.pop(0))


BAD_PROPORTIONS = [[np.nan, 1.0], [0.0, 0.0], [np.inf, 0.0]]


@pytest.mark.parametrize("bad", BAD_PROPORTIONS)
def test_a_draw_without_proportions_is_rejected_and_repeated(bad):
    labels = np.zeros(10, dtype=np.int64)
    generator = Scripted(bad, [0.2, 0.8])
    chosen = Dirichlet(name="dirichlet", alpha=1.0, min_samples=1)
    own = assign(chosen, labels, 2, generator, None)
    assert [len(samples) for samples in own] == [2, 8]
    assert generator.draws == []


def test_500_clients_with_too_large_a_minimum_end_in_an_error_that_helps():
    labels = np.repeat(np.arange(100), 500)  # as CIFAR-100
    with pytest.raises(FedstageError) as raised:
        assigned(labels, 500, alpha=0.1, min_samples=90, max_draws=20)
    message = str(raised.value)
    assert "\n" not in message
    for part in (
        "partition.max_draws = 20:",
        "500 clients",
        "partition.min_samples = 90 samples",
        "raise it or partition.alpha = 0.1",
        "lower the minimum",
        "fewer clients",
    ):
        assert part in message
