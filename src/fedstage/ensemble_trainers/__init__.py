"""EnsembleTrainer: (aggregated and/or client models) -> teacher.

A teacher is a list of members and weights, and what it says is the weighted average of its members'
logits (FedEED section 3): y(x) = sigma(sum_j a_j f(x; w_j)). A module a kind, found by name.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module

import torch

from fedstage.config import Aggregated, Clients


@dataclass(frozen=True)
class Members:
    """Logits of the members that one round and group contribute.

    Attributes
    ----------
    round, group : int
        Where the members come from.
    logits : torch.Tensor
        [members, n, classes].
    samples : tuple of int
        Training samples behind each member.
    """

    round: int
    group: int
    logits: torch.Tensor
    samples: tuple[int, ...]


def teacher_logits(settings: Clients | Aggregated, members: Sequence[Members]) -> torch.Tensor:
    """Return the ensemble's averaged logits [n, classes], float32.

    Members are taken in the order of round, group and slot, whatever the order they are given in.
    """
    trainer = import_module(f"fedstage.ensemble_trainers.{settings.name}")
    ordered = sorted(members, key=lambda part: (part.round, part.group))
    shares: list[float] = trainer.shares(settings, ordered)
    logits = torch.cat([part.logits for part in ordered]).double()
    return torch.einsum("m,mnc->nc", torch.tensor(shares, dtype=torch.float64), logits).float()
