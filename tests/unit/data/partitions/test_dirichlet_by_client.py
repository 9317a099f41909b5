import numpy as np
import pytest

from fedstage.data.partitions import divide
from fedstage.data.partitions.dirichlet import draw
from fedstage.settings.partitions import DirichletByClient

LABELS = np.repeat(np.arange(10), 100)


def divided(alpha, clients=10, labels=LABELS, seed=0):
    settings = DirichletByClient(name="dirichlet_by_client", alpha=alpha)
    return divide(settings, labels, clients, np.random.default_rng(seed))


@pytest.mark.parametrize("alpha", [0.001, 0.1, 1.0, 1e6])
@pytest.mark.parametrize("clients", [3, 10, 7])
def test_every_sample_has_one_client_and_clients_are_of_equal_size(alpha, clients):
    parts = divided(alpha, clients)
    assert sorted(np.concatenate(parts)) == list(range(1000))
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= 1


def test_shares_are_those_of_a_dirichlet_distribution():
    """With plenty left, a share has the variance p (1 - p) / (C alpha + 1)."""
    generator, left = np.random.default_rng(0), np.full(4, 10**6)
    drawn = np.array([draw(np.full(4, 0.5), left, 1000, generator) for _ in range(4000)]) / 1000
    assert np.allclose(drawn.mean(axis=0), 0.25, atol=0.02)
    assert np.allclose(drawn.var(axis=0), 0.25 * 0.75 / 3, rtol=0.08)


def one_after_another(shares, left, size, generator):
    """Draw a class for each sample from those that have not run out."""
    counts = np.zeros_like(left)
    for _ in range(size):
        own = np.where(counts < left, shares, 0)
        counts[generator.choice(len(left), p=own / own.sum())] += 1
    return counts


def test_classes_that_run_out_are_left_out_as_if_drawn_one_after_another(monkeypatch):
    shares, left = np.array([0.7, 0.2, 0.1]), np.array([5, 4, 30])

    class Fixed:
        """A generator whose Dirichlet draw is known."""

        def __init__(self, generator):
            self.multinomial, self.choice = generator.multinomial, generator.choice

        def dirichlet(self, parameters):
            return shares

    generator, other = np.random.default_rng(1), np.random.default_rng(2)
    ours = [draw(shares, left, 12, Fixed(generator)) for _ in range(4000)]
    plain = [one_after_another(shares, left, 12, other) for _ in range(4000)]
    assert np.allclose(np.mean(ours, axis=0), np.mean(plain, axis=0), atol=0.1)
    assert np.allclose(np.var(ours, axis=0), np.var(plain, axis=0), rtol=0.12, atol=0.05)


def test_a_client_whose_classes_have_all_run_out_takes_others():
    counts = draw(np.array([1e-9, 1e-9]), np.array([0, 8]), 8, np.random.default_rng(0))
    assert counts.tolist() == [0, 8]
