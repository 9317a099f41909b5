"""The targets that a model on the server selects (FedGEMS, Cheng et al. 2021).

For each labelled public sample (x, y), given the model w that the distillation starts from:

    w is right            y alone; the pool keeps f(x; w)
    wrong, in the pool    y, and the logits in the pool, of the last round in which it was right
    wrong, and not there  y, and z(x) = sum_k a_k(x) f_k(x) over the clients k that are right, with
                          a = softmax over these k of 1 / H( sigma(f_k(x)) ); where none is, y alone

H is the entropy. Clients learn y and the server's logits of all samples.
"""

from typing import NamedTuple

import torch

#: The least entropy, so that its inverse is finite.
LEAST = 1e-6


class Selected(NamedTuple):
    """Targets [n, 2 + C] of the `fedgems` loss, the pool [n, C], and a mask [n] of its samples."""

    targets: torch.Tensor
    pool: torch.Tensor
    pooled: torch.Tensor


def select(
    own: torch.Tensor,
    members: torch.Tensor,
    labels: torch.Tensor,
    pool: torch.Tensor,
    pooled: torch.Tensor,
) -> Selected:
    """Return targets and the next pool, from the model's logits [n, C] and clients' [m, n, C]."""
    right = own.argmax(1) == labels
    consensus, anybody = mean_of_correct(members, labels)
    teacher = torch.where(pooled[:, None], pool, consensus)
    taught = ~right & (pooled | anybody)
    after = torch.where(right[:, None], own, pool)
    return Selected(together(labels, taught, teacher), after, pooled | right)


def mean_of_correct(
    members: torch.Tensor, labels: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return z [n, C], zero where no client is right, and a mask [n] of where any is."""
    right = members.argmax(2) == labels
    logits = members.double()
    entropy = (-logits.softmax(2) * logits.log_softmax(2)).sum(2).clamp(min=LEAST)
    confident = (1 / entropy).masked_fill(~right, float("-inf"))
    shares = confident.softmax(0).nan_to_num(0.0)  # where no client is right
    return torch.einsum("mn,mnc->nc", shares, logits).to(members.dtype), right.any(0)


def from_server(own: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return what clients learn: the labels, and the server's logits."""
    return together(labels, torch.ones_like(labels, dtype=torch.bool), own)


def together(labels: torch.Tensor, taught: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
    """Return targets [n, 2 + C]: exact labels, whether logits are taught, and logits."""
    columns = torch.stack([labels.to(teacher.dtype), taught.to(teacher.dtype)], dim=1)
    return torch.cat([columns, teacher], dim=1)
