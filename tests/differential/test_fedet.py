"""Fed-ET's consensus and loss in rounds, sample by sample in float64, and by finite differences.

`reference/fedet_rounds.py` has whole rounds, `reference/fedkd.py` one-shot students.
"""

from itertools import product
from math import exp, log

import pytest
import torch

from fedstage.algorithm.ensemble_trainers import Members, confidence_shares, teacher_logits
from fedstage.algorithm.global_trainers.transfers import transfer
from fedstage.settings.ensembles import Clients
from fedstage.settings.server import Server
from fedstage.settings.transfers import FedEtTransfer

M, N, C = 4, 30, 5
SERVER = Server(steps=1, batch_size=1, learning_rate=1.0)
VARIANTS = list(product(("confidence", "uniform"), ("all", "dissenters")))


def spoken(*shape, seed):
    generator = torch.Generator().manual_seed(seed)
    return 2 * torch.randn(*shape, generator=generator, dtype=torch.float64)


# They agree about some samples, and about others they do not.
MEMBERS, STUDENT = spoken(M, N, C, seed=0) + 2 * spoken(N, C, seed=2), spoken(N, C, seed=1)


def settings_of(weights="confidence", over="all", diversity=0.3):
    return FedEtTransfer(name="fedet", weights=weights, normalised_over=over, diversity=diversity)


def consensus(members, weights="confidence"):
    """The teacher's logits of clients in two groups, as a round has them."""
    ensemble = Clients(name="clients", weights=weights, average="probabilities")
    parts = [Members(1, 1, members[:1], (9,), "clients")]
    parts += [Members(1, 2, members[1:], tuple(range(1, len(members))), "clients")]
    return teacher_logits(ensemble, parts)


def targets_of(settings, members):
    teacher = consensus(members, settings.weights)
    return transfer(settings).targets(settings, teacher, members)


# --- by hand --------------------------------------------------------------------------------------


def softmax(logits):
    odds = [exp(z) for z in logits]
    return [odd / sum(odds) for odd in odds]


def alphas(said, weights="confidence"):
    """Eq. 3 for one sample, of the probabilities of each member."""
    if weights == "uniform":
        return [1 / len(said)] * len(said)
    variances = []
    for p in said:
        mean = sum(p) / len(p)
        variances.append(sum((one - mean) ** 2 for one in p) / len(p))
    return [v / sum(variances) for v in variances]


def best(values):
    return max(range(len(values)), key=values.__getitem__)


def of_one_sample(logits, weights="confidence", over="all"):
    """Eqs. 2 to 8: s, y_s and s_div of the logits of each member."""
    said = [softmax(one) for one in logits]
    shares = alphas(said, weights)
    agreed = [sum(a * p[c] for a, p in zip(shares, said, strict=True)) for c in range(C)]
    label = best(agreed)
    against = [m for m, p in enumerate(said) if best(p) != label]
    total = sum(shares[m] for m in against) if over == "dissenters" else 1.0
    dissent = [sum(shares[m] / total * said[m][c] for m in against) for c in range(C)]
    return agreed, label, dissent


def loss_by_hand(student, members, weights, over, diversity):
    """Eq. 10, with KL inside of the mean."""
    total = 0.0
    for n, logits in enumerate(student.tolist()):
        _, label, dissent = of_one_sample(members[:, n].tolist(), weights, over)
        own = softmax(logits)
        total -= log(own[label])
        total += diversity * sum(p * log(p / q) for p, q in zip(dissent, own, strict=True) if p > 0)
    return total / len(student)


# --- the same -------------------------------------------------------------------------------------


def test_weights_are_shares_of_variances():
    found = confidence_shares(MEMBERS)
    for n in range(N):
        said = [softmax(logits) for logits in MEMBERS[:, n].tolist()]
        assert found[:, n].tolist() == pytest.approx(alphas(said), rel=1e-12)
    assert torch.allclose(found.sum(0), torch.ones(N, dtype=torch.float64), rtol=1e-14)


def test_who_is_sure_has_all_the_weight_and_who_knows_nothing_none():
    members = torch.zeros(3, 2, C)
    members[1, 0, 2] = 30.0
    assert confidence_shares(members)[:, 0].tolist() == pytest.approx([0, 1, 0])
    assert confidence_shares(members)[:, 1].tolist() == pytest.approx([1 / 3] * 3)  # nobody knows


@pytest.mark.parametrize("weights", ["confidence", "uniform"])
def test_the_consensus_is_the_weighted_mean_of_probabilities(weights):
    found = consensus(MEMBERS, weights).softmax(1)
    for n in range(N):
        expected, label, _ = of_one_sample(MEMBERS[:, n].tolist(), weights)
        assert found[n].tolist() == pytest.approx(expected, abs=1e-6)  # float32
        assert int(found[n].argmax()) == label


@pytest.mark.parametrize(("weights", "over"), VARIANTS)
def test_dissent_is_what_those_say_who_see_another_class(weights, over):
    found = targets_of(settings_of(weights, over), MEMBERS)
    sizes = set()
    for n in range(N):
        _, label, dissent = of_one_sample(MEMBERS[:, n].tolist(), weights, over)
        assert int(found[n, 0]) == label
        assert found[n, 1:].tolist() == pytest.approx(dissent, rel=1e-12)
        sizes.add(round(sum(dissent), 6))
    assert 0.0 in sizes
    assert (sizes == {0.0, 1.0}) == (over == "dissenters")


@pytest.mark.parametrize(("weights", "over"), VARIANTS)
@pytest.mark.parametrize("diversity", [0.0, 0.3])
def test_the_loss_is_the_printed_one(weights, over, diversity):
    settings = settings_of(weights, over, diversity)
    found = transfer(settings).loss(settings, SERVER)(STUDENT, targets_of(settings, MEMBERS))
    expected = loss_by_hand(STUDENT, MEMBERS, weights, over, diversity)
    assert float(found) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("weights", "over"), VARIANTS)
def test_the_gradient_is_that_of_finite_differences(weights, over):
    settings, student = settings_of(weights, over), STUDENT.clone().requires_grad_()
    transfer(settings).loss(settings, SERVER)(student, targets_of(settings, MEMBERS)).backward()
    for place in ((0, 0), (7, 3), (N - 1, C - 1)):
        step = torch.zeros_like(STUDENT)
        step[place] = 1e-6
        ends = [loss_by_hand(STUDENT + s * step, MEMBERS, weights, over, 0.3) for s in (1, -1)]
        slope = (ends[0] - ends[1]) / 2e-6
        assert float(student.grad[place]) == pytest.approx(slope, rel=1e-5, abs=1e-9)


@pytest.mark.parametrize(("weights", "over"), VARIANTS)
def test_where_all_agree_the_loss_is_cross_entropy_exactly(weights, over):
    label = MEMBERS[0].argmax(1)
    agreeing = MEMBERS + 20 * torch.nn.functional.one_hot(label, C)
    settings = settings_of(weights, over, diversity=5.0)
    targets = targets_of(settings, agreeing)
    student = STUDENT.clone().requires_grad_()
    loss = transfer(settings).loss(settings, SERVER)(student, targets)
    plain = torch.nn.functional.cross_entropy(student, label)
    assert torch.equal(loss, plain)
    gradients = [torch.autograd.grad(one, student)[0] for one in (loss, plain)]
    assert torch.equal(*gradients)
