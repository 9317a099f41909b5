"""Training of aggregators in rounds; `test_aggregators.py` has these by hand."""

import pytest
import torch

from fedstage.algorithm.one_shot.aggregator_training import Samples, Task, federated, trainer
from fedstage.algorithm.one_shot.aggregators import Knowledge, combination, rule
from fedstage.errors import FedstageError
from fedstage.randomness import torch_generator
from fedstage.settings.aggregators import FederatedRounds, Mlp

M, C = 3, 4
SIZES = {0: 20, 1: 7, 2: 40}
ADAM = {"adam": {"learning_rate": 0.02}}


def samples_of(size, seed):
    """Labelled samples: member i is right about class i, and says noise about the others."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(C, (size,), generator=generator)
    logits = torch.randn(M, size, C, generator=generator)
    for member in range(M):
        logits[member, :, member] = torch.where(labels == member, 3.0, -3.0)
    return Samples(logits, labels)


def clients(sizes=SIZES):
    return {client: samples_of(size, client) for client, size in sizes.items()}


def rounds(**changes):
    settings = {"rounds": 12, "batch_size": 8, "learning_rate": 0.5, "server_optimizer": ADAM}
    return FederatedRounds.model_validate({"name": "federated", **settings, **changes})


MLP = Mlp(name="mlp", hidden=5)


def started(chosen=MLP):
    known = Knowledge(torch.ones(M, C, dtype=torch.int64), (1, 8, 8))
    return rule(chosen).parameters(chosen, known, torch_generator(0, "start"))


def trained(settings, samples=None, seed=0, chosen=MLP):
    samples = clients() if samples is None else samples
    task = Task(combination(chosen), started(chosen), samples, seed)
    return trainer(settings).train(settings, task)


def same(one, other):
    return all(torch.equal(one[name], other[name]) for name in one | other)


# --- rounds ---------------------------------------------------------------------------------------


def test_rounds_are_counted_and_the_last_aggregator_is_kept():
    done = trained(rounds())
    assert [row.number for row in done.rounds] == list(range(1, 13))
    assert {row.participants for row in done.rounds} == {3}
    assert not same(done.parameters, trained(rounds(rounds=11)).parameters)


def test_the_same_seed_gives_the_same_and_another_other_batches():
    first, again, other = trained(rounds()), trained(rounds()), trained(rounds(), seed=1)
    assert same(first.parameters, again.parameters)
    assert not same(first.parameters, other.parameters)


def test_what_is_handed_in_stays_as_it_is():
    start, samples = started(), clients()
    federated.train(rounds(), Task(combination(MLP), start, samples, 0))
    assert same(start, started())
    assert not any(value.requires_grad for value in start.values())


def test_batches_of_a_client_go_on_from_round_to_round():
    """20 samples in batches of 8: two batches, then another permutation."""
    chosen = rounds(rounds=4, steps=1)
    batches = federated._batches(chosen, 20, 0, seed=0)
    assert [len(batch) for batch in batches] == [8] * 4
    assert len(set(torch.cat(batches[:2]).tolist())) == 16
    few = federated._batches(chosen, 7, 0, seed=0)
    assert [sorted(batch.tolist()) for batch in few] == [list(range(7))] * 4


def test_a_clients_batches_do_not_depend_on_the_other_clients():
    own = federated._batches(rounds(), 20, 1, seed=0)
    assert not all(map(torch.equal, own, federated._batches(rounds(), 20, 2, seed=0)))
    assert not all(map(torch.equal, own, federated._batches(rounds(), 20, 1, seed=1)))


# --- divergence -----------------------------------------------------------------------------------


def test_divergence_is_told_with_its_round_and_rate():
    wild = {client: Samples(own.logits * 1e38, own.labels) for client, own in clients().items()}
    with pytest.raises(FedstageError, match=r"aggregator, round \d+: .*learning_rate = 0\.5$"):
        trained(rounds(), wild)
