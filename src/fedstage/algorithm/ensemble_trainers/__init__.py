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
    if paths and not members:
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
    if settings.average == "median":
        in_turn = logits.sort(0).values
        return ((in_turn[(len(logits) - 1) // 2] + in_turn[len(logits) // 2]) / 2).float()
    shares = checked(settings, implementation(settings).shares(settings, ordered), logits)
    if settings.average == "probabilities":
        by_sample = shares.reshape(len(shares), -1, 1)
        return (logits.log_softmax(2) + by_sample.log()).logsumexp(0).float()
    sums = "m,mnc->nc" if shares.dim() == 1 else "mn,mnc->nc"
    return torch.einsum(sums, shares, logits).float()


_TOLERANCE = 1e-5  # of a sum, which may be of numbers in float32


def checked(settings: EnsembleTrainer, shares: object, logits: torch.Tensor) -> torch.Tensor:
    """Return checked weights a_j [members] or a_j(x) [members, n] in float64.

    Parameters
    ----------
    shares : object
        What the function `shares` of an ensemble has returned: a tensor of any floating type.
    logits : torch.Tensor
        Logits of all members, [members, n, classes].

    Raises
    ------
    FedstageError
        If the shape is wrong, a number is not a finite float, the sum over members is not 1, or a
        number is negative where probabilities are averaged.
    """
    if not isinstance(shares, torch.Tensor):
        returned = type(shares).__name__
        raise FedstageError(f"ensemble = {settings.name}: shares returns {returned}: no tensor")
    if fault := _fault(shares, logits.shape[:2]):
        raise FedstageError(f"ensemble = {settings.name}: shares {fault}")
    if settings.average == "probabilities" and (shares < 0).any():
        raise FedstageError(
            f"ensemble = {settings.name}: shares has {shares.min():g}: must not be negative where "
            "average = probabilities"
        )
    return shares.to(logits.device, torch.float64)


def _fault(shares: torch.Tensor, shape: torch.Size) -> str:
    """Return what is wrong with shares of members and samples, or an empty string."""
    if shares.shape not in (shape, shape[:1]):
        of = f"{shape[0]} members, or [{shape[0]}, {shape[1]}] with {shape[1]} samples"
        return f"has the shape {list(shares.shape)}: must be [{shape[0]}], of {of}"
    if not shares.is_floating_point():
        return f"has the type {str(shares.dtype).removeprefix('torch.')}: must be float64"
    if not shares.isfinite().all():
        return "has numbers that are not finite"
    sums = shares.double().sum(0).flatten()
    if not torch.allclose(sums, torch.ones_like(sums), rtol=0, atol=_TOLERANCE):
        worst = sums[(sums - 1).abs().argmax()]
        return f"has a sum over members of {worst:g}: must be 1"
    return ""


def confidence_shares(logits: torch.Tensor) -> torch.Tensor:
    """Return weights [M, n] by confidence, of logits [M, n, C] (Fed-ET, Cho et al. 2022, Eq. 3).

        alpha_k(x) = v_k(x) / sum_l v_l(x),     v_k(x) = Var_c s_c(w_k, x)

    v_k is the variance of the C probabilities of model k: high where it is confident. Where all
    probabilities of all models are equal, 0/0 stands for equal weights.
    """
    variances = logits.softmax(2).var(2, correction=0)
    total = variances.sum(0)
    equal = torch.full_like(variances, 1 / len(logits))
    return torch.where(total > 0, variances / total, equal)
