"""EnsembleTrainer: (aggregated and/or client models) -> teacher.

A teacher is a list of members and weights. What it says is the weighted average of its members'
logits, y(x) = sigma(sum_j a_j f(x; w_j)) (FedEED section 3), or by choice of their probabilities,
y(x) = sum_j a_j sigma(f(x; w_j)) (FedBE). A module a kind, found by name.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module

import torch

from fedstage.settings.ensembles import EnsembleTrainer


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
    kind : str
        What they are (`fedstage.plan.members`); of one kind there is one part a round and group.
    """

    round: int
    group: int
    logits: torch.Tensor
    samples: tuple[int, ...]
    kind: str = "aggregated"


def teacher_logits(settings: EnsembleTrainer, members: Sequence[Members]) -> torch.Tensor:
    """Return the logits z [n, classes] of the ensemble, float32: y(x) = sigma(z(x)).

    Where probabilities are averaged z is the logarithm of their average, so that a temperature acts
    on the ensemble's answer and not on its members'. Members are taken in the order of round,
    group, kind and slot, whatever the order they are given in.
    """
    trainer = import_module(f"fedstage.algorithm.ensemble_trainers.{settings.name}")
    ordered = sorted(members, key=lambda part: (part.round, part.group, part.kind))
    shares = torch.tensor(trainer.shares(settings, ordered), dtype=torch.float64)
    logits = torch.cat([part.logits for part in ordered]).double()
    if settings.average == "probabilities":
        weighted = logits.log_softmax(2) + shares.log()[:, None, None]
        return weighted.logsumexp(0).float()
    return torch.einsum("m,mnc->nc", shares, logits).float()
