import types

import numpy as np
import pytest

from fedstage.data import partitions
from fedstage.data.partitions import divide
from fedstage.errors import FedstageError
from fedstage.settings.partitions import Dirichlet, DirichletEqual, Iid, Natural, Shards

SAMPLES = 1000
CLIENTS = 13
LABELS = np.random.default_rng(7).integers(0, 10, SAMPLES)
NATURAL = np.random.default_rng(8).permutation(np.arange(SAMPLES) % CLIENTS)

SCHEMES = [
    Iid(name="iid"),
    Dirichlet(name="dirichlet", alpha=0.5, min_samples=5),
    Dirichlet(name="dirichlet", alpha=0.5, min_samples=5, mask=False),
    DirichletEqual(name="dirichlet_equal", alpha=0.5),
    Shards(name="shards", classes_per_client=3),
    Natural(name="natural"),
]


def divided(scheme, seed=0):
    return divide(scheme, LABELS, CLIENTS, np.random.default_rng(seed), NATURAL)


def lists_of(assigned):
    return [samples.tolist() for samples in assigned]


@pytest.mark.parametrize("scheme", SCHEMES, ids=repr)
def test_every_sample_goes_to_exactly_one_client(scheme):
    assigned = divided(scheme)
    assert len(assigned) == CLIENTS
    assert min(len(samples) for samples in assigned) >= 1
    np.testing.assert_array_equal(np.sort(np.concatenate(assigned)), np.arange(SAMPLES))


@pytest.mark.parametrize("scheme", SCHEMES, ids=repr)
def test_same_generator_same_partition(scheme):
    assert lists_of(divided(scheme, seed=3)) == lists_of(divided(scheme, seed=3))


@pytest.mark.parametrize(
    "scheme",
    [Iid(name="iid"), Shards(name="shards"), DirichletEqual(name="dirichlet_equal", alpha=0.5)],
    ids=repr,
)
def test_equal_sizes_where_promised(scheme):
    sizes = [len(samples) for samples in divided(scheme)]
    shards = scheme.classes_per_client if scheme.name == "shards" else 1
    assert max(sizes) - min(sizes) <= shards


def test_a_client_without_samples_is_refused(monkeypatch):
    def assign(settings, labels, clients, generator, natural):
        return [np.arange(len(labels)), np.array([], dtype=np.int64)]

    scheme = types.SimpleNamespace(assign=assign)
    monkeypatch.setattr(partitions, "implementation", lambda settings: scheme)
    with pytest.raises(FedstageError, match="partition = iid: client 1 of 2 has no samples"):
        divide(Iid(name="iid"), LABELS, 2, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("shares", "fault"),
    [
        ([[0, 1], [2]], "2 shares, not one for each of 3 clients"),
        ([[0, 1], [], [2]], "client 1 of 3 has no samples, and needs at least 1"),
        ([[0], [1.5], [2]], "the share of client 1: must be indices of samples, not float64"),
        ([[[0]], [1], [2]], "the share of client 0: must be indices of samples"),
        ([[0], [1], [2, 1000]], "the share of client 2: indices must be from 0 to 999"),
        ([[-1], [1], [2]], "the share of client 0: indices must be from 0 to 999"),
        ([[0, 5], [1], [5]], "sample 5 is 2 times in the shares of clients [0, 2], not once"),
        ([[0, 0], [1], [5]], "sample 0 is 2 times in the shares of clients [0], not once"),
    ],
)
def test_a_scheme_that_returns_no_partition_is_refused(monkeypatch, shares, fault):
    scheme = types.SimpleNamespace(assign=lambda *given: shares)
    monkeypatch.setattr(partitions, "implementation", lambda settings: scheme)
    with pytest.raises(FedstageError) as error:
        divide(Iid(name="iid"), LABELS, 3, np.random.default_rng(0))
    assert str(error.value).startswith(f"partition = iid: {fault}")


def test_a_scheme_may_leave_out_samples_and_return_lists(monkeypatch):
    scheme = types.SimpleNamespace(assign=lambda *given: [[3], [1, 2]])
    monkeypatch.setattr(partitions, "implementation", lambda settings: scheme)
    divided = divide(Iid(name="iid"), LABELS, 2, np.random.default_rng(0))
    assert lists_of(divided) == [[3], [1, 2]]
