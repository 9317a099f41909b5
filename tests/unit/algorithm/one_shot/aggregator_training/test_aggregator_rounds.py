"""Training of aggregators in rounds; `test_aggregators.py` has these by hand."""

import pytest
import torch

from fedstage.algorithm.one_shot.aggregator_training import Samples, Task, federated, trainer
from fedstage.algorithm.one_shot.aggregators import Knowledge, combination, rule
from fedstage.errors import FedstageError
from fedstage.randomness import torch_generator
from fedstage.settings.aggregators import FederatedRounds, Mlp
from fedstage.settings.privacy import ExamplePrivacy
from fedstage.training.batches import poisson_batches

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


# --- rounds ---------------------------------------------------------------------------------------


def test_batches_of_a_client_go_on_from_round_to_round():
    """20 samples in batches of 8: two batches, then another permutation."""
    chosen = rounds(rounds=4, steps=1)
    task = Task(combination(MLP), started(), clients(), 0)
    batches = federated._batches(chosen, task, 0)
    assert [len(batch) for batch in batches] == [8] * 4
    assert len(set(torch.cat(batches[:2]).tolist())) == 16
    few = federated._batches(chosen, task, 1)
    assert [sorted(batch.tolist()) for batch in few] == [list(range(7))] * 4


# --- divergence -----------------------------------------------------------------------------------


def test_divergence_is_told_with_its_round_and_rate():
    wild = {client: Samples(own.logits * 1e38, own.labels) for client, own in clients().items()}
    with pytest.raises(FedstageError, match=r"aggregator, round \d+: .*learning_rate = 0\.5$"):
        trained(rounds(), wild)


# --- privacy --------------------------------------------------------------------------------------

HOW = ExamplePrivacy(clip=2.5, noise=0.8)


def test_private_steps_are_those_of_clipped_gradients_and_noise():
    """Of one client, by hand: gradients sample by sample, and the noise that the package draws."""
    chosen = rounds(rounds=3, steps=2, server_optimizer="average")
    own, samples = "recipe", {0: samples_of(20, 0)}
    task = Task(combination(MLP), started(), samples, 4, own_key=own, privacy=HOW)
    found = federated.train(chosen, task).parameters
    weights = {name: value.double() for name, value in started().items()}
    drawn = torch_generator(4, "aggregator", 0, "batches")
    noise = torch_generator(4, own, "aggregator", 0, "noise")
    lengths = []
    for batch in poisson_batches(20, 8, 6, drawn):
        total = {name: torch.zeros_like(value) for name, value in weights.items()}
        for one in batch.tolist():
            moving = {name: value.clone().requires_grad_() for name, value in weights.items()}
            outputs = combination(MLP)(moving, samples[0].logits[:, [one]].double(), None)
            loss = torch.nn.functional.cross_entropy(outputs, samples[0].labels[[one]])
            slopes = dict(zip(moving, torch.autograd.grad(loss, [*moving.values()]), strict=True))
            lengths.append(float(sum(slope.square().sum() for slope in slopes.values()).sqrt()))
            for name, slope in slopes.items():
                total[name] += slope * min(1.0, HOW.clip / lengths[-1])
        for name in sorted(total):
            total[name] += HOW.noise * HOW.clip * torch.randn(total[name].shape, generator=noise)
            weights[name] = weights[name] - 0.5 * total[name] / 8
    assert min(lengths) < HOW.clip < max(lengths)
    for name, value in weights.items():
        torch.testing.assert_close(found[name].double(), value, rtol=0, atol=2e-6)
