import numpy as np
import pytest

from fedstage.data.partitions.schemes import assign
from fedstage.settings.partitions import Iid


def assigned(samples, clients, seed=0):
    labels = np.arange(samples) // (samples // 10)
    return assign(Iid(name="iid"), labels, clients, np.random.default_rng(seed), None)


@pytest.mark.parametrize(("samples", "clients", "sizes"), [(100, 4, {25}), (103, 10, {10, 11})])
def test_sizes(samples, clients, sizes):
    assert {len(own) for own in assigned(samples, clients)} == sizes


def test_samples_are_shuffled_not_cut_in_order():
    # 1,000 samples of each of 10 classes in order, 5 clients: 200 of each class, with the
    # hypergeometric standard deviation sqrt(1000 * 0.2 * 0.8 * 8/9.999) = 11.3.
    for own in assigned(10_000, 5):
        counts = np.bincount(own // 1000, minlength=10)
        assert np.abs(counts - 200).max() < 5 * 12
        assert counts.std() > 2
