import numpy as np
import pyarrow as pa
import pytest

from fedstage.data.partitions import CLIENTS_SCHEMA
from fedstage.data.partitions.roles import split_roles

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
