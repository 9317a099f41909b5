"""Ensembles against plain sums over their members (FedSDD, Eq. 5; FedEED section 3)."""

import re

import numpy as np
import pytest
import torch

from fedstage.algorithm.ensemble_trainers import Members, teacher_logits
from fedstage.plan.training import member_logits
from fedstage.randomness import torch_generator
from fedstage.settings.ensembles import Aggregated, Bayesian, Clients
from fedstage.settings.recipes import Recipe

N, CLASSES = 6, 4


def logits(*key, members=1):
    return 5 * torch.randn(members, N, CLASSES, generator=torch_generator("logits", *key))


def aggregated(rounds, groups):
    return [
        Members(round_, group, logits(round_, group), (10 * round_ + group,))
        for round_ in rounds
        for group in range(groups)
    ]


def temporal(checkpoints):
    return Aggregated(name="aggregated", checkpoints=checkpoints)


def equation_5(t, groups, checkpoints):
    """sum_k sum_r f(x; w_{t-r,k}) / (number of terms), over the rounds from 1 that exist."""
    total, terms = np.zeros((N, CLASSES)), 0
    for k in range(groups):
        for r in range(checkpoints):
            if t - r >= 1:
                total += logits(t - r, k)[0].double().numpy()
                terms += 1
    return total / terms


def recipe(groups):
    return Recipe.model_validate(
        {
            "data": "digits",
            "clients": 8,
            "partition": "iid",
            "participants": 4,
            "model": "cnn_small",
            "global_models": groups,
            "client": {"learning_rate": 0.1, "batch_size": 8, "epochs": 1},
            "seed": 0,
        }
    )


def members_of_graph(t, groups, checkpoints):
    """Read the logits that the workflow gives to the ensemble of round t."""
    paths = member_logits(recipe(groups), t, temporal(checkpoints), "test")
    found = [re.search(r"round_(\d+)/group_(\d+)/logits/aggregated-test", path) for path in paths]
    keys = [(int(match[1]), int(match[2])) for match in found]
    return [Members(round_, group, logits(round_, group), (1,)) for round_, group in keys]


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize(("t", "checkpoints"), [(1, 1), (1, 3), (2, 3), (3, 3), (4, 3), (9, 4)])
def test_temporal_ensemble_is_equation_5(t, groups, checkpoints):
    members = members_of_graph(t, groups, checkpoints)
    assert len(members) == groups * min(t, checkpoints)
    ours = teacher_logits(temporal(checkpoints), members)
    assert (ours.shape, ours.dtype) == ((N, CLASSES), torch.float32)
    assert np.allclose(ours.numpy(), equation_5(t, groups, checkpoints), rtol=1e-6, atol=1e-6)


def test_checkpoints_weigh_the_same_whatever_their_samples():
    members = aggregated(range(1, 3), groups=2)
    shuffled = [Members(m.round, m.group, m.logits, (1,)) for m in members]
    assert torch.equal(teacher_logits(temporal(2), members), teacher_logits(temporal(2), shuffled))


SAMPLES = [(5, 20, 11), (7,), (1, 16)]


def clients():
    return [
        Members(4, group, logits("clients", group, members=len(samples)), samples)
        for group, samples in enumerate(SAMPLES)
    ]


@pytest.mark.parametrize("weights", ["uniform", "samples"])
def test_clients_of_all_groups_by_a_plain_loop(weights):
    total, mass = np.zeros((N, CLASSES)), 0.0
    for part in clients():
        for member, samples in zip(part.logits, part.samples, strict=True):
            share = samples if weights == "samples" else 1
            total += share * member.double().numpy()
            mass += share
    settings = Clients(name="clients", weights=weights)
    ours = teacher_logits(settings if weights == "samples" else Clients(name="clients"), clients())
    assert mass == (60 if weights == "samples" else 6)
    assert np.allclose(ours.numpy(), total / mass, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("ensemble", "members"),
    [
        (Clients(name="clients", weights="samples"), clients()),
        (Clients(name="clients"), clients()),
        (temporal(3), aggregated(range(5, 8), groups=3)),
    ],
    ids=["clients by samples", "clients", "aggregated"],
)
def test_order_of_the_parts_does_not_matter(ensemble, members):
    expected = teacher_logits(ensemble, members)
    for seed in range(5):
        order = torch.randperm(len(members), generator=torch_generator(seed)).tolist()
        assert torch.equal(teacher_logits(ensemble, [members[i] for i in order]), expected)


def test_one_member_speaks_for_itself_bit_for_bit():
    one = Members(1, 0, logits(1, 0), (7,))
    assert torch.equal(teacher_logits(temporal(5), [one]), logits(1, 0)[0])
    assert torch.equal(teacher_logits(Clients(name="clients"), [one]), logits(1, 0)[0])


# --- averages of probabilities --------------------------------------------------------------------


def softmax(z):
    odds = np.exp(z - z.max(-1, keepdims=True))
    return odds / odds.sum(-1, keepdims=True)


@pytest.mark.parametrize("weights", ["uniform", "samples"])
def test_probabilities_of_clients_by_a_plain_loop(weights):
    total, mass = np.zeros((N, CLASSES)), 0.0
    for part in clients():
        for member, samples in zip(part.logits, part.samples, strict=True):
            share = samples if weights == "samples" else 1
            total += share * softmax(member.double().numpy())
            mass += share
    ensemble = Clients(name="clients", weights=weights, average="probabilities")
    ours = teacher_logits(ensemble, clients())
    assert ours.dtype == torch.float32
    assert np.allclose(softmax(ours.double().numpy()), total / mass, rtol=1e-5)
    assert np.allclose(ours.numpy(), np.log(total / mass), rtol=1e-5, atol=1e-5)


def test_probabilities_of_certain_members_stay_finite():
    certain = torch.tensor([[[900.0, -900.0]], [[900.0, -900.0]]])
    ours = teacher_logits(
        Clients(name="clients", average="probabilities"), [Members(1, 0, certain, (1, 1))]
    )
    assert ours.tolist() == [[0.0, -1800.0]]


# --- Bayesian -------------------------------------------------------------------------------------

KINDS = {"aggregated": 1, "clients": 3, "gaussian_2": 2}


def bayesian_members():
    return [
        Members(4, group, logits(kind, group, members=count), (group + 1,) * count, kind)
        for group in range(2)
        for kind, count in KINDS.items()
    ]


@pytest.mark.parametrize("average", ["logits", "probabilities"])
def test_members_of_a_bayesian_ensemble_weigh_the_same(average):
    said = np.concatenate([part.logits.double().numpy() for part in bayesian_members()])
    assert len(said) == 12
    ensemble = Bayesian(name="bayesian", samples=2, average=average)
    ours = softmax(teacher_logits(ensemble, bayesian_members()).double().numpy())
    expected = softmax(said.mean(0)) if average == "logits" else softmax(said).mean(0)
    assert np.allclose(ours, expected, rtol=1e-5)


def test_kinds_of_members_are_added_in_one_order():
    """Sums of these depend on it."""
    said = {"aggregated": 1e30, "clients": 1.0, "gaussian_1": -1e30}
    parts = [Members(1, 0, torch.full((1, 1, 2), z), (1,), kind) for kind, z in said.items()]
    ensemble = Bayesian(name="bayesian", samples=1)
    found = {
        tuple(teacher_logits(ensemble, [parts[i] for i in order]).flatten().tolist())
        for order in [(0, 1, 2), (0, 2, 1), (2, 0, 1)]
    }
    assert len(found) == 1
