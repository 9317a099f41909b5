"""EnsembleTrainer: (aggregated and/or client models) -> teacher.

A teacher is a list of members and weights. Its logits are the weighted average of its members'
logits, y(x) = sigma(sum_j a_j f(x; w_j)) (FedEED section 3). Optionally its probabilities are
averaged instead, y(x) = sum_j a_j sigma(f(x; w_j)) (FedBE). FedSDD's temporal ensemble (Eq. 5) is
`aggregated`. Each kind is a module with the function `shares`, which returns a_j [members], or
a_j(x) [members, n], in float64.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from fedstage.algorithm.ensemble_trainers.shares import checked
from fedstage.errors import FedstageError
from fedstage.settings.base import implementation
from fedstage.settings.ensembles import EnsembleTrainer
from fedstage.storage.tensors import load_tensors


@dataclass(frozen=True)
class Members:
    """Logits [members, n, classes] of one kind of members, of one round and group.

    `samples` are the members' numbers of training samples; `kind` is one of
    `fedstage.plan.members`. `log_odds` [members, n] measure how likely an image comes from a
    member's client, where they weight its votes.
    """

    round: int
    group: int
    logits: torch.Tensor
    samples: tuple[int, ...]
    kind: str = "aggregated"
    log_odds: torch.Tensor | None = None


def read_members(paths: Sequence[Path], odds: Path | None = None) -> list[Members]:
    """Read logits of ensemble members; files without members (all diverged) are left out.

    The members get the rows of their clients in `odds`, if it is given.

    Raises
    ------
    FedstageError
        If no member is left.
    """
    members = []
    by_client = None if odds is None else load_tensors(odds)[0]["log_odds"]
    for path in paths:
        tensors, metadata = load_tensors(path)
        if samples := tuple(metadata["samples"]):
            place = metadata["round"], metadata["group"]
            log_odds = None if by_client is None else by_client[metadata["clients"]]
            read = Members(*place, tensors["logits"], samples, metadata["members"], log_odds)
            members.append(read)
    if not members:
        raise FedstageError(f"{paths[0]}: no member of the ensemble is left, all diverged")
    return members


def in_order(members: Sequence[Members]) -> list[Members]:
    """Return members in the order of round, group and kind, in which all sums are taken."""
    return sorted(members, key=lambda part: (part.round, part.group, part.kind))


def stack(members: Sequence[Members]) -> torch.Tensor:
    """Return the logits [members, n, classes] of all members."""
    return torch.cat([part.logits for part in members])


def teacher_logits(settings: EnsembleTrainer, members: Sequence[Members]) -> torch.Tensor:
    """Return the logits z [n, classes] of the ensemble, float32: y(x) = sigma(z(x)).

    Where probabilities are averaged, z is the logarithm of their average, so that a temperature
    acts on the ensemble's prediction and not on its members'. Sums are in the order of round,
    group, kind and participant, regardless of the order of `members`.

    Raises
    ------
    FedstageError
        If the weights are not what `shares.checked` demands.
    """
    ordered = in_order(members)
    logits = stack(ordered).double()
    shares = checked(settings, implementation(settings).shares(settings, ordered), logits)
    if settings.average == "probabilities":
        by_sample = shares.reshape(len(shares), -1, 1)
        return (logits.log_softmax(2) + by_sample.log()).logsumexp(0).float()
    sums = "m,mnc->nc" if shares.dim() == 1 else "mn,mnc->nc"
    return torch.einsum(sums, shares, logits).float()
