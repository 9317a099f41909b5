"""Drop-worst of FedDF: client models that know nothing are left out of the fusion.

That is out of the average that the student starts from, and out of the teacher. Clients are judged
by their accuracy on the server's validation set.

As published: who is not better than chance is dropped. As released: who is worse than 1.2 times
chance is dropped; where that is nobody, those do not teach who are worse than mean - 1.5 deviations
of the others, the best one not counted, but they are averaged. Where nobody would be left, all
stay.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch

from fedstage.algorithm.aggregation.averages import average_weights
from fedstage.algorithm.ensemble_trainers import Members
from fedstage.algorithm.exchange.updates import Update, answered
from fedstage.settings.aggregation import Aggregation
from fedstage.storage.tensors import Weights

MARGIN, DEVIATIONS = 1.2, 1.5

Rule = Literal["none", "as_published", "as_released"]
Flags = dict[int, list[bool]]


@dataclass(frozen=True)
class Fused:
    """Who takes part in the fusion: a flag for each client of each group, in order of slots.

    Attributes
    ----------
    averaged, teaching : dict
        The flags by group.
    dropped : int
        How many clients do not teach.
    """

    averaged: Flags
    teaching: Flags
    dropped: int


def fused(judged: Sequence[Members], labels: torch.Tensor, rule: Rule) -> Fused:
    """Judge the clients of a round.

    Parameters
    ----------
    judged : sequence of Members
        The logits of all groups' clients on the server's validation set.
    labels : torch.Tensor
        Of these images.
    """
    parts = sorted(judged, key=lambda part: part.group)
    accuracies = [accuracy for part in parts for accuracy in _accuracies(part.logits, labels)]
    averaged, teaching = keep(accuracies, parts[0].logits.shape[2], rule)
    return Fused(_split(averaged, parts), _split(teaching, parts), teaching.count(False))


def keep(accuracies: Sequence[float], classes: int, rule: Rule) -> tuple[list[bool], list[bool]]:
    """Say for each client whether it is averaged, and whether it teaches.

    Parameters
    ----------
    accuracies : sequence of float
        Shares of 1.
    """
    if rule == "as_published":
        kept = _or_all([accuracy > 1 / classes for accuracy in accuracies])
        return kept, kept
    kept = [accuracy >= MARGIN / classes for accuracy in accuracies]
    if all(kept):
        return kept, _without_outliers(accuracies)
    kept = _or_all(kept)
    return kept, kept


def teachers(members: Sequence[Members], teaching: Mapping[int, Sequence[bool]]) -> list[Members]:
    """Return the members that teach."""
    left = []
    for part in members:
        flags = teaching[part.group]
        samples = tuple(n for n, kept in zip(part.samples, flags, strict=True) if kept)
        left.append(replace(part, logits=part.logits[torch.tensor(flags)], samples=samples))
    return left


def average_anew(
    aggregated: Weights,
    updates: Sequence[Update],
    averaged: Sequence[bool],
    settings: Aggregation,
) -> Weights:
    """Return the average of a group's clients that are kept.

    Where that is everybody, or nobody, it is the model that was aggregated.
    """
    if all(averaged) or not any(averaged):
        return aggregated
    kept = [one for one, flag in zip(answered(updates), averaged, strict=True) if flag]
    uniform = settings.weights == "uniform"
    weights = [1.0 if uniform else float(update.notes["samples"]) for update in kept]
    return average_weights([update.weights for update in kept], weights)


def _accuracies(logits: torch.Tensor, labels: torch.Tensor) -> list[float]:
    """Return shares of 1, correctly rounded: just chance must not look like more."""
    right = (logits.argmax(2) == labels).sum(1).tolist()
    return [count / len(labels) for count in right]


def _split(flags: list[bool], parts: Sequence[Members]) -> Flags:
    """Divide flags over groups."""
    rest = iter(flags)
    return {part.group: [next(rest) for _ in part.samples] for part in parts}


def _without_outliers(accuracies: Sequence[float]) -> list[bool]:
    others = sorted(accuracies)[:-1]
    if not others:
        return [True] * len(accuracies)
    least = statistics.fmean(others) - DEVIATIONS * statistics.pstdev(others)
    return [accuracy >= least for accuracy in accuracies]


def _or_all(kept: list[bool]) -> list[bool]:
    return kept if any(kept) else [True] * len(kept)
