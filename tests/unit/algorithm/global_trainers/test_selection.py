"""What a model on the server selects to learn, sample by sample."""

from math import exp, log

import pytest
import torch
from torch.nn.functional import cross_entropy

from fedstage.algorithm.global_trainers.selection import select
from fedstage.algorithm.global_trainers.transfers import transfer
from fedstage.settings.transfers import FedGemsTransfer

#: Samples: right; wrong and in the pool; wrong, with two clients right; with one; with none.
LABELS = torch.tensor([0, 1, 2, 0, 1])
OWN = torch.tensor([[2, 0, 0], [2, 1, 0], [1, 0, 0.5], [0, 0, 3], [1, 0, 0]])
MEMBERS = torch.tensor(
    [
        [[0, 1, 0], [0, 1, 0], [0, 0, 2], [0, 1, 0], [1, 0, 0]],
        [[3, 0, 0], [0, 2, 0], [0, 0.5, 1], [2, 0, 1], [0, 0, 1]],
        [[1, 0, 0], [0, 0, 1], [3, 0, 0], [0, 1, 0], [1, 0, 0]],
    ],
    dtype=torch.float32,
)
POOL = torch.arange(15.0).reshape(5, 3)
POOLED = torch.tensor([False, True, False, False, False])


def entropy(logits):
    shares = [exp(z) / sum(map(exp, logits)) for z in logits]
    return -sum(share * log(share) for share in shares)


def test_each_sample_has_what_is_known_of_it():
    targets, pool, pooled = select(OWN, MEMBERS, LABELS, POOL, POOLED)
    assert targets[:, 0].long().tolist() == LABELS.tolist()
    assert targets[:, 1].tolist() == [0, 1, 1, 1, 0]
    assert targets[1, 2:].tolist() == POOL[1].tolist()
    inverse = [exp(1 / entropy(MEMBERS[k, 2].tolist())) for k in (0, 1)]
    first = inverse[0] / sum(inverse)
    expected = first * MEMBERS[0, 2] + (1 - first) * MEMBERS[1, 2]
    torch.testing.assert_close(targets[2, 2:], expected)
    torch.testing.assert_close(targets[3, 2:], MEMBERS[1, 3])
    assert targets.isfinite().all()
    # The pool takes what the model says where it is right, and forgets nothing.
    assert pooled.tolist() == [True, True, False, False, False]
    assert pool[0].tolist() == OWN[0].tolist()
    assert pool[1].tolist() == POOL[1].tolist()


def test_a_client_that_is_sure_has_a_finite_weight():
    sure = torch.tensor([[[500.0, 0.0, 0.0]], [[1.0, 0.0, 0.0]]])
    wrong, label = torch.tensor([[0.0, 1.0, 0.0]]), torch.tensor([0])
    targets, _, _ = select(wrong, sure, label, torch.zeros(1, 3), torch.tensor([False]))
    torch.testing.assert_close(targets[0, 2:], sure[0, 0])


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
def test_the_loss_is_of_labels_and_where_something_is_known_of_that(epsilon):
    settings = FedGemsTransfer(name="fedgems", epsilon=epsilon)
    targets, _, _ = select(OWN, MEMBERS, LABELS, POOL, POOLED)
    student = torch.randn(5, 3, generator=torch.Generator().manual_seed(1)).double()
    student.requires_grad_()
    loss = transfer(settings).loss(settings, None)
    found = loss(student, targets.double())
    total = 0.0
    for z, (label, known, *teacher) in zip(student, targets.double().tolist(), strict=True):
        hard = cross_entropy(z, torch.tensor(int(label))).item()
        q = torch.tensor(teacher, dtype=torch.float64).softmax(0)
        soft = (q * (q.log() - z.log_softmax(0))).sum().item()
        total += epsilon * hard + (1 - epsilon) * soft if known else hard
    assert found.item() == pytest.approx(total / 5)
    assert torch.autograd.gradcheck(lambda z: loss(z, targets.double()), student)
