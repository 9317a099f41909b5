"""What a student learns, in one shot or in rounds; and clients, from one another."""

from math import exp

import pytest
import torch

from fedstage.algorithm.ensemble_trainers import Members, teacher_logits
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
L2 = L2Transfer(name="l2")
SHARP = EntropyReduction(name="entropy_reduction", temperature=0.1)


def spoken(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) * 2


TEACHER, MEMBERS, STUDENT = spoken(N, C), spoken(M, N, C, seed=1), spoken(N, C, seed=2)


def learnt(settings, student=STUDENT, teacher=TEACHER, members=MEMBERS):
    module = transfer(settings)
    targets = module.targets(settings, teacher, members)
    assert len(targets) == len(teacher)
    return module.loss(settings, SERVER)(student, targets)


def test_l1_is_the_mean_difference_of_logits():
    assert learnt(L1) == pytest.approx(float((STUDENT - TEACHER).abs().mean()))


def test_l2_is_the_mean_squared_difference_of_logits():
    assert learnt(L2) == pytest.approx(float((STUDENT - TEACHER).square().mean()))


# --- entropy reduction ----------------------------------------------------------------------------


def reduced(logits, temperature=0.1):
    """DS-FL's t of clients' logits [M, n, C]."""
    members = [Members(1, 1, logits, (1,) * len(logits), "clients")]
    teacher = teacher_logits(Clients(name="clients", average="probabilities"), members)
    settings = SHARP.model_copy(update={"temperature": temperature})
    return transfer(settings).targets(settings, teacher, logits)


@pytest.mark.parametrize("temperature", [0.1, 0.5, 1.0])
def test_entropy_reduction_is_a_softmax_of_mean_probabilities(temperature):
    found = reduced(MEMBERS, temperature)
    for n in range(N):
        said = [[exp(z) for z in member[n].tolist()] for member in MEMBERS]
        mean = [sum(odds[c] / sum(odds) for odds in said) / M for c in range(C)]
        odds = [exp(p / temperature) for p in mean]
        assert found[n].tolist() == pytest.approx([one / sum(odds) for one in odds], abs=1e-6)


def test_students_of_entropy_reduction_learn_given_probabilities():
    targets = transfer(SHARP).targets(SHARP, TEACHER, MEMBERS)
    expected = -(targets * STUDENT.log_softmax(1)).sum(1).mean()
    assert float(learnt(SHARP)) == pytest.approx(float(expected), rel=1e-6)
    student = targets.log().requires_grad_()  # who says t itself has nothing left to learn
    transfer(SHARP).loss(SHARP, SERVER)(student, targets).backward()
    assert torch.allclose(student.grad, torch.zeros(N, C), atol=1e-7)
