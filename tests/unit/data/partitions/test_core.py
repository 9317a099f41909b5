"""The server's core: a share of the partition, or drawn first, each class in proportion."""

import numpy as np
import pytest

from fedstage.data.partitions import divide
from fedstage.data.partitions.core import divide_with_core
from fedstage.randomness import numpy_generator
from fedstage.settings.partitions import PartitionSettings

CLIENTS = 4
#: Classes of 300, 100 and 50 samples, in an arbitrary order, and three natural clients.
LABELS = np.random.default_rng(1).permutation(np.repeat([0, 1, 2], [300, 100, 50]))
NATURAL = np.arange(len(LABELS)) % 3


def settings(core, partition="iid", clients=CLIENTS, seed=3):
    values = {"clients": clients, "partition": partition, "validation": 0.0, "seed": seed}
    return PartitionSettings.model_validate(values | {"core": core})


def sorted_union(*shares):
    return np.sort(np.concatenate(shares)).tolist()


def test_a_stratified_core_has_each_class_in_proportion_and_clients_divide_the_rest():
    skewed = {"dirichlet": {"alpha": 0.1, "min_samples": 1}}
    shares, own = divide_with_core(settings({"samples": "stratified"}, skewed), LABELS, None)
    assert np.bincount(LABELS[own]).tolist() == [60, 20, 10]
    assert sorted_union(*shares, own) == list(range(len(LABELS)))
    left = np.setdiff1d(np.arange(len(LABELS)), own)
    generator = numpy_generator(3, "partition", "clients")
    expected = divide(settings(None, skewed).partition, LABELS[left], CLIENTS, generator)
    assert [share.tolist() for share in shares] == [left[share].tolist() for share in expected]


def test_a_stratified_core_is_drawn_by_the_seed_and_leaves_natural_clients_theirs():
    drawn = {"samples": "stratified"}
    shares, own = divide_with_core(settings(drawn, "natural", 3), LABELS, NATURAL)
    assert [set(NATURAL[share]) for share in shares] == [{0}, {1}, {2}]
    _, same = divide_with_core(settings(drawn, "iid", 3), LABELS, NATURAL)
    _, other = divide_with_core(settings(drawn, "natural", 3, seed=4), LABELS, NATURAL)
    assert set(own) == set(same) != set(other)


@pytest.mark.parametrize(("core", "shares"), [(None, CLIENTS), ({}, CLIENTS + 1)])
def test_else_the_partition_has_a_share_for_each_client_and_one_for_a_core(core, shares):
    generator = numpy_generator(3, "partition", "clients")
    expected = divide(settings(core).partition, LABELS, shares, generator)
    found, own = divide_with_core(settings(core), LABELS, None)
    found += [] if own is None else [own]
    assert [share.tolist() for share in found] == [share.tolist() for share in expected]
