"""Distillation of Fed-ET (Cho et al. 2022, Eqs. 4 and 6 to 10).

The objective of a step's batch is

    F(W) = mean_x [ CE( W(x), y_s(x) ) + lambda KL( s_div(x), s(W, x) ) ]

y_s is the teacher's class. s_div sums the probabilities of the members that disagree with it,

    s_div(x) = sum over k with argmax s(w_k, x) != y_s(x) of alpha_k(x) s(w_k, x)

with the weights alpha of all members, as printed: it sums to less than one, and is zero where all
agree. (Over the dissenters, alpha sums to one wherever there are any.) KL is
sum_c p_c log(p_c / q_c), with 0 log 0 = 0. The paper prints it outside of the average in the
objective and inside in the step; here it is inside.
"""

import torch
from torch.nn.functional import cross_entropy, kl_div

from fedstage.algorithm.ensemble_trainers import confidence_shares
from fedstage.settings.server import Server
from fedstage.settings.transfers import FedEtTransfer
from fedstage.training.passes import Loss


def targets(settings: FedEtTransfer, teacher: torch.Tensor, members: torch.Tensor) -> torch.Tensor:
    """Return [n, 1 + C]: y_s and s_div."""
    classes = teacher.argmax(1)
    disagree = members.argmax(2) != classes
    weights = _weights(settings, members) * disagree
    if settings.normalised_over == "dissenters":
        total = weights.sum(0)
        weights = torch.where(total > 0, weights / total, weights)
    diverse = torch.einsum("mn,mnc->nc", weights, members.softmax(2))
    return torch.cat([classes[:, None].to(diverse.dtype), diverse], dim=1)


def _weights(settings: FedEtTransfer, members: torch.Tensor) -> torch.Tensor:
    """Return alpha [M, n] of all members."""
    if settings.weights == "confidence":
        return confidence_shares(members)
    return torch.full_like(members[:, :, 0], 1 / len(members))


def loss(settings: FedEtTransfer, server: Server) -> Loss:
    """Return CE + lambda KL."""

    def fedet(student: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        hard = cross_entropy(student, target[:, 0].long())
        divergence = kl_div(student.log_softmax(1), target[:, 1:], reduction="batchmean")
        return hard + settings.diversity * divergence

    return fedet
