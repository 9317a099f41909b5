"""Training of aggregators: draws, early stopping and a server alone.

`test_aggregators.py` has federated rounds by hand.
"""

import pytest
import torch

from fedstage.algorithm.one_shot.aggregator_training import Samples, Task, federated, proxy, trainer
from fedstage.algorithm.one_shot.aggregators import Knowledge, combination, rule
from fedstage.errors import FedstageError
from fedstage.randomness import torch_generator
from fedstage.settings.aggregators import FederatedRounds, Linear, Mlp, ProxySet

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


def trained(settings, samples=None, validation=None, seed=0, chosen=MLP):
    samples = clients() if samples is None else samples
    task = Task(combination(chosen), started(chosen), samples, validation, seed)
    return trainer(settings).train(settings, task)


def same(one, other):
    return all(torch.equal(one[name], other[name]) for name in one | other)


# --- rounds ---------------------------------------------------------------------------------------


def test_rounds_are_counted_and_the_last_aggregator_is_kept():
    done = trained(rounds())
    assert [row.number for row in done.rounds] == list(range(1, 13))
    assert {row.participants for row in done.rounds} == {3}
    assert {row.accuracy for row in done.rounds} == {None}
    assert done.best == 12
    assert not same(done.parameters, trained(rounds(rounds=11)).parameters)


def test_the_same_seed_gives_the_same_and_another_other_batches():
    first, again, other = trained(rounds()), trained(rounds()), trained(rounds(), seed=1)
    assert same(first.parameters, again.parameters)
    assert not same(first.parameters, other.parameters)


def test_what_is_handed_in_stays_as_it_is():
    start, samples = started(), clients()
    federated.train(rounds(), Task(combination(MLP), start, samples, None, 0))
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


# --- who takes part -------------------------------------------------------------------------------


def test_participants_of_a_round_are_drawn_without_putting_back():
    chosen = rounds(participants=2)
    drawn = [federated.participants(chosen, [0, 3, 5, 9], round_, 0) for round_ in range(1, 200)]
    assert all(len(set(clients)) == 2 for clients in drawn)
    assert all(clients == sorted(clients) for clients in drawn)
    counts = [sum(client in clients for clients in drawn) for client in (0, 3, 5, 9)]
    assert min(counts) > 70  # 99.5 on average, deviation 7
    assert federated.participants(chosen, [0, 3, 5, 9], 1, 1) != drawn[0] or (
        federated.participants(chosen, [0, 3, 5, 9], 2, 1) != drawn[1]
    )


def test_all_take_part_where_nothing_is_said_or_fewer_have_samples():
    assert federated.participants(rounds(), [1, 4], 1, 0) == [1, 4]
    assert federated.participants(rounds(participants=3), [1, 4], 1, 0) == [1, 4]


def test_only_participants_move_the_aggregator():
    chosen = rounds(rounds=1, participants=1)
    (who,) = federated.participants(chosen, sorted(SIZES), 1, 0)
    alone = trained(chosen, {who: clients()[who]}).parameters
    assert same(trained(chosen).parameters, alone)


# --- what the server does -------------------------------------------------------------------------


# --- early stopping -------------------------------------------------------------------------------


def stopping(**changes):
    return {"early_stopping": {"every": 3, "patience": 6, **changes}}


def test_validation_is_measured_every_few_rounds_and_at_the_last():
    done = trained(rounds(rounds=11, **stopping(patience=100)), validation=samples_of(50, 9))
    assert [row.number for row in done.rounds if row.accuracy is not None] == [3, 6, 9, 11]


def test_the_best_aggregator_is_kept_and_the_first_of_equals():
    done = trained(rounds(rounds=60, **stopping(patience=100)), validation=samples_of(50, 9))
    measured = {row.number: row.accuracy for row in done.rounds if row.accuracy is not None}
    assert done.best == max(measured, key=measured.get)
    assert same(done.parameters, trained(rounds(rounds=done.best)).parameters)


def test_training_ends_where_it_gets_no_better():
    # A rate of next to nothing: what is best stays best.
    slow = rounds(rounds=50, learning_rate=1e-9, server_optimizer="average", **stopping(patience=6))
    done = trained(slow, validation=samples_of(50, 9))
    assert done.best == 3
    assert len(done.rounds) == 9


# --- the server alone -----------------------------------------------------------------------------


def alone(**changes):
    return ProxySet.model_validate({"name": "proxy", "steps": 80, "batch_size": 16, **changes})


def test_the_server_takes_the_steps_of_adam():
    """All samples in every batch, against PyTorch's Adam."""
    own, chosen = samples_of(30, 5), Linear(name="linear")
    settings = alone(steps=7, batch_size=100, learning_rate=0.01)
    found = trained(settings, {-1: own}, chosen=chosen).parameters["weights"]
    weights = torch.nn.Parameter(started(chosen)["weights"].double())
    adam = torch.optim.Adam([weights], lr=0.01)
    for _ in range(7):
        adam.zero_grad()
        said = torch.einsum("m,mnc->nc", weights, own.logits.double())
        torch.nn.functional.cross_entropy(said, own.labels).backward()
        adam.step()
    assert torch.allclose(found.double(), weights, atol=1e-6)


def test_the_server_stops_as_clients_do():
    settings = alone(learning_rate=1e-9, optimiser="sgd", **stopping(patience=6))
    done = trained(settings, {-1: samples_of(30, 5)}, validation=samples_of(50, 9))
    assert (done.best, len(done.rounds)) == (3, 9)
    assert not any(value.requires_grad for value in done.parameters.values())
    longer = alone(steps=30, learning_rate=0.05, **stopping(patience=100))
    done = trained(longer, {-1: samples_of(30, 5)}, validation=samples_of(50, 9))
    until = trained(alone(steps=done.best, learning_rate=0.05), {-1: samples_of(30, 5)})
    assert same(done.parameters, until.parameters)


# --- divergence -----------------------------------------------------------------------------------


def test_divergence_is_told_with_its_round_and_rate():
    wild = {client: Samples(own.logits * 1e38, own.labels) for client, own in clients().items()}
    with pytest.raises(FedstageError, match=r"aggregator, round \d+: .*learning_rate = 0\.5$"):
        trained(rounds(), wild)
    with pytest.raises(FedstageError, match=r"aggregator, step \d+: .*learning_rate = 3\.0$"):
        trained(alone(learning_rate=3.0), {-1: wild[0]})


def test_the_server_alone_reads_one_set():
    with pytest.raises(ValueError, match="too many values"):
        proxy.train(alone(), Task(combination(MLP), started(), clients(), None, 0))
