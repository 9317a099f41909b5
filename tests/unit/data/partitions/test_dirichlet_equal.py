import numpy as np
import pytest

from fedstage.data.partitions.dirichlet import assign, draw_block
from fedstage.settings.partitions import DirichletEqual


def assigned(labels, clients, seed=0, **settings):
    chosen = DirichletEqual(name="dirichlet_equal", **settings)
    return assign(chosen, labels, clients, np.random.default_rng(seed), None)


def labels_of(classes, size):
    return np.random.default_rng(5).permutation(np.repeat(np.arange(classes), size))


@pytest.mark.parametrize("clients", [3, 10, 11, 25, 40])
def test_all_samples_used_in_equal_sizes(clients):
    labels = labels_of(10, 101)
    own = assigned(labels, clients, alpha=0.3)
    sizes = [len(samples) for samples in own]
    assert max(sizes) - min(sizes) <= 1
    np.testing.assert_array_equal(np.sort(np.concatenate(own)), np.arange(1010))


def test_blocks_get_samples_in_proportion_to_their_clients(monkeypatch):
    seen = []

    def recorded(settings, labels, samples, clients, generator):
        seen.append((len(samples), clients))
        return draw_block(settings, labels, samples, clients, generator)

    monkeypatch.setattr("fedstage.data.partitions.dirichlet.draw_block", recorded)
    assigned(labels_of(10, 100), 25, alpha=1.0)
    assert seen == [(400, 10), (400, 10), (200, 5)]


def test_blocks_are_random_samples_of_the_data_set():
    # Sorted labels, 20 clients: without the shuffle, the first block would hold classes 0-4 only.
    labels = np.repeat(np.arange(10), 100)
    own = assigned(labels, 20, alpha=1e6)
    for block in (own[:10], own[10:]):
        counts = np.bincount(labels[np.concatenate(block)], minlength=10)
        assert np.abs(counts - 50).max() < 5 * 5


@pytest.mark.parametrize("seed", range(5))
def test_no_client_of_a_block_is_below_half_of_the_mean(seed, monkeypatch):
    from fedstage.data.partitions import dirichlet

    smallest = []

    def recorded(*arguments):
        drawn = redraw(*arguments)
        smallest.append(min(map(len, drawn)))
        return drawn

    redraw = dirichlet.redraw
    monkeypatch.setattr(dirichlet, "redraw", recorded)
    assigned(labels_of(10, 99), 20, seed, alpha=0.1)
    assert len(smallest) == 2
    assert min(smallest) >= 99 * 10 / 20 / 2
