"""What a student learns, in one shot or in rounds; and clients, from one another."""

from math import exp

import pytest
import torch
from torch.nn import functional

from fedstage.algorithm.ensemble_trainers import Members, teacher_logits
from fedstage.algorithm.global_trainers.distillation import distillation_loss
from fedstage.algorithm.global_trainers.transfers import transfer
from fedstage.settings.ensembles import Clients
from fedstage.settings.server import Server
from fedstage.settings.transfers import (
    EntropyReduction,
    FedEtTransfer,
    KlTransfer,
    L1Transfer,
    L2Transfer,
)

M, N, C = 3, 12, 4
SERVER = Server(steps=1, batch_size=4, learning_rate=0.1, temperature=3.0)
KL, L1, FEDET = (
    KlTransfer(name="kl"), L1Transfer(name="l1"), FedEtTransfer(name="fedet", diversity=0.5),
)  # fmt: skip
L2, BRIER = (L2Transfer(name="l2", scores=scores) for scores in ("logits", "probabilities"))
SHARP = EntropyReduction(name="entropy_reduction", temperature=0.1)


def spoken(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) * 2


TEACHER, MEMBERS, STUDENT = spoken(N, C), spoken(M, N, C, seed=1), spoken(N, C, seed=2)


def learnt(settings, student=STUDENT, teacher=TEACHER, members=MEMBERS):
    module = transfer(settings)
    targets = module.targets(settings, teacher, members)
    assert len(targets) == len(teacher)
    return module.loss(settings, SERVER)(student, targets)


def test_kl_is_that_of_federated_students():
    assert learnt(KL) == distillation_loss(SERVER)(STUDENT, TEACHER)


def test_l1_is_the_mean_difference_of_logits():
    assert learnt(L1) == pytest.approx(float((STUDENT - TEACHER).abs().mean()))


def test_l2_is_the_mean_squared_difference_of_scores():
    assert learnt(L2) == pytest.approx(float((STUDENT - TEACHER).square().mean()))
    off = STUDENT.softmax(1) - TEACHER.softmax(1)
    assert learnt(BRIER) == pytest.approx(float(off.square().mean()))


@pytest.mark.parametrize("settings", [L2, BRIER], ids=["logits", "probabilities"])
def test_l2_has_the_slope_of_finite_differences(settings):
    student = STUDENT.double().requires_grad_()
    module = transfer(settings)
    loss = module.loss(settings, SERVER)
    targets = module.targets(settings, TEACHER.double(), MEMBERS.double())
    assert torch.autograd.gradcheck(lambda own: loss(own, targets), student)


@pytest.mark.parametrize("settings", [KL, L1, L2, BRIER])
def test_nothing_is_left_to_learn_of_who_says_the_same(settings):
    assert float(learnt(settings, student=TEACHER)) == pytest.approx(0.0, abs=1e-6)


def test_members_do_not_matter_but_to_fedet():
    other = spoken(M, N, C, seed=9)
    for settings, matters in ((KL, False), (L1, False), (L2, False), (FEDET, True), (SHARP, False)):
        assert (learnt(settings) != learnt(settings, members=other)) == matters


def test_fedet_without_diversity_is_the_cross_entropy_of_the_teachers_class():
    plain = FedEtTransfer(name="fedet", diversity=0.0)
    expected = functional.cross_entropy(STUDENT, TEACHER.argmax(1))
    assert learnt(plain) == pytest.approx(float(expected))


def test_where_all_agree_nothing_is_added():
    agreeing = functional.one_hot(TEACHER.argmax(1), C).float().expand(M, N, C)
    targets = transfer(FEDET).targets(FEDET, TEACHER, agreeing)
    assert torch.equal(targets[:, 1:], torch.zeros(N, C))
    expected = functional.cross_entropy(STUDENT, TEACHER.argmax(1))
    assert learnt(FEDET, members=agreeing) == pytest.approx(float(expected))


def test_dissent_sums_to_the_weights_of_those_who_dissent():
    members = torch.zeros(2, 1, C)
    members[0, 0, 1], members[1, 0, 2] = 3.0, 3.0
    teacher = functional.one_hot(torch.tensor([1]), C).float()
    targets = transfer(FEDET).targets(FEDET, teacher, members)
    assert targets[0, 0] == 1
    assert torch.allclose(targets[0, 1:], 0.5 * members[1, 0].softmax(0))


def test_the_gradient_of_fedet_flows_through_the_student():
    student = STUDENT.clone().requires_grad_()
    learnt(FEDET, student=student).backward()
    assert bool((student.grad != 0).all())


# --- entropy reduction ----------------------------------------------------------------------------


def reduced(logits, temperature=0.1):
    """DS-FL's t of clients' logits [M, n, C]."""
    members = [Members(1, 1, logits, (1,) * len(logits), "clients")]
    teacher = teacher_logits(Clients(name="clients", average="probabilities"), members)
    settings = SHARP.model_copy(update={"temperature": temperature})
    return transfer(settings).targets(settings, teacher, logits)


def entropy(p):
    return -(p * p.log()).sum(1)


@pytest.mark.parametrize("temperature", [0.1, 0.5, 1.0])
def test_entropy_reduction_is_a_softmax_of_mean_probabilities(temperature):
    found = reduced(MEMBERS, temperature)
    for n in range(N):
        said = [[exp(z) for z in member[n].tolist()] for member in MEMBERS]
        mean = [sum(odds[c] / sum(odds) for odds in said) / M for c in range(C)]
        odds = [exp(p / temperature) for p in mean]
        assert found[n].tolist() == pytest.approx([one / sum(odds) for one in odds], abs=1e-6)


def test_one_client_and_equal_clients_learn_their_own_probabilities_sharpened():
    expected = (MEMBERS[0].softmax(1) / 0.1).softmax(1)
    assert torch.allclose(reduced(MEMBERS[:1]), expected, atol=1e-6)
    assert torch.allclose(reduced(MEMBERS[:1].expand(M, N, C)), expected, atol=1e-6)


@pytest.mark.parametrize("temperature", [0.05, 0.1, 1.0])
def test_entropy_reduction_changes_no_class(temperature):
    mean = MEMBERS.softmax(2).mean(0)
    assert torch.equal(reduced(MEMBERS, temperature).argmax(1), mean.argmax(1))


def test_a_low_temperature_sharpens_and_one_blurs():
    mean = MEMBERS.softmax(2).mean(0)
    assert bool((entropy(reduced(MEMBERS)) < entropy(mean)).all())
    assert bool((entropy(reduced(MEMBERS, 1.0)) > entropy(mean)).all())
    two = torch.tensor([[[0.9, 0.1]]]).log()
    assert reduced(two)[0].tolist() == pytest.approx([0.99966, 0.00034], abs=5e-6)


def test_students_of_entropy_reduction_learn_given_probabilities():
    targets = transfer(SHARP).targets(SHARP, TEACHER, MEMBERS)
    expected = -(targets * STUDENT.log_softmax(1)).sum(1).mean()
    assert float(learnt(SHARP)) == pytest.approx(float(expected), rel=1e-6)
    student = targets.log().requires_grad_()  # who says t itself has nothing left to learn
    transfer(SHARP).loss(SHARP, SERVER)(student, targets).backward()
    assert torch.allclose(student.grad, torch.zeros(N, C), atol=1e-7)
