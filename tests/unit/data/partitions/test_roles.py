from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from fedstage.data.partitions import CLIENTS_SCHEMA, HISTOGRAM_SCHEMA, divide
from fedstage.data.partitions.roles import divide_with_core, label_histogram, split_roles
from fedstage.randomness import numpy_generator
from fedstage.settings.partitions import PartitionSettings

ASSIGNED = [np.array([9, 3, 7, 1]), np.array([2]), np.arange(10, 110)[::-1]]


def validation_of(columns, client):
    chosen = (columns["client"] == client) & (columns["role"] == "validation")
    return columns["sample"][chosen].tolist()


def test_columns_are_sorted_and_fit_the_schema():
    columns = split_roles(ASSIGNED, 0.25, 0)
    table = pa.table({name: columns[name] for name in CLIENTS_SCHEMA.names}, schema=CLIENTS_SCHEMA)
    assert table.num_rows == 105
    assert columns["client"].dtype == np.int32
    assert columns["sample"].dtype == np.int64
    assert columns["client"].tolist() == [0] * 4 + [1] + [2] * 100
    assert columns["sample"].tolist() == [1, 3, 7, 9, 2, *range(10, 110)]
    assert set(columns["role"].tolist()) == {"train", "validation"}


@pytest.mark.parametrize(
    ("fraction", "counts"), [(0.0, [0, 0, 0]), (0.25, [1, 0, 25]), (0.4, [2, 0, 40])]
)
def test_number_of_validation_samples_is_rounded(fraction, counts):
    columns = split_roles(ASSIGNED, fraction, 0)
    assert [len(validation_of(columns, client)) for client in range(3)] == counts


def test_a_clients_roles_do_not_depend_on_the_others():
    alone = split_roles([np.array([], dtype=int), np.array([], dtype=int), ASSIGNED[2]], 0.3, 5)
    among = split_roles(ASSIGNED, 0.3, 5)
    assert validation_of(alone, 2) == validation_of(among, 2)


def test_a_clients_roles_do_not_depend_on_the_order_of_its_samples():
    reversed_order = [samples[::-1] for samples in ASSIGNED]
    for one, other in zip(
        split_roles(ASSIGNED, 0.3, 5).values(),
        split_roles(reversed_order, 0.3, 5).values(),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)


def test_validation_samples_are_drawn_at_random():
    own = [np.arange(1000)]
    means = [np.mean(validation_of(split_roles(own, 0.2, seed), 0)) for seed in range(20)]
    # The mean of 200 of 1,000 indices: 499.5 +- 18.3; the last 200 would have 899.5.
    assert np.abs(np.array(means) - 499.5).max() < 100
    assert abs(np.mean(means) - 499.5) < 5 * 18.3 / np.sqrt(20)


# --- aggregator -----------------------------------------------------------------------------------


def of_role(columns, role, client):
    chosen = (columns["client"] == client) & (columns["role"] == role)
    return columns["sample"][chosen].tolist()


@pytest.mark.parametrize(
    ("validation", "aggregator", "counts"),
    [
        (0.0, 0.1, [(4, 0, 0), (1, 0, 0), (90, 10, 0)]),
        (0.2, 0.1, [(3, 0, 1), (1, 0, 0), (72, 8, 20)]),
        (0.5, 0.99, [(1, 1, 2), (1, 0, 0), (1, 49, 50)]),
    ],
)
def test_the_aggregators_part_is_one_of_what_validation_leaves(validation, aggregator, counts):
    columns = split_roles(ASSIGNED, validation, 0, aggregator)
    roles = ("train", "aggregator", "validation")
    for client, expected in enumerate(counts):
        assert tuple(len(of_role(columns, role, client)) for role in roles) == expected
    assert sorted(columns["sample"].tolist()) == sorted(np.concatenate(ASSIGNED).tolist())


def test_a_larger_part_for_the_aggregator_holds_a_smaller_one():
    small, large = (split_roles(ASSIGNED, 0.1, 5, part) for part in (0.1, 0.3))
    assert set(of_role(small, "aggregator", 2)) < set(of_role(large, "aggregator", 2))


# --- histogram ------------------------------------------------------------------------------------


def rows(columns):
    return list(zip(*(columns[name].tolist() for name in HISTOGRAM_SCHEMA.names), strict=True))


def test_agrees_with_counting_one_by_one_sorted_and_without_zeros():
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 12, 500)
    columns = split_roles(np.array_split(generator.permutation(500), 12), 0.3, 0)
    counted = Counter(
        (int(client), str(role), int(labels[sample]))
        for client, sample, role in zip(*columns.values(), strict=True)
    )
    expected = [(*key, samples) for key, samples in sorted(counted.items())]
    histogram = label_histogram(columns, labels)
    assert rows(histogram) == expected
    assert histogram["samples"].min() > 0
    table = pa.table(histogram, schema=HISTOGRAM_SCHEMA)
    assert table.num_rows == len(expected)


# --- the server's core: a share of the partition, or drawn first, each class in proportion --------


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
