"""FedDF's drop-worst: clients' models that are hardly better than chance are not fused.

They are left out of the average that the student starts from, and out of the teacher. Clients are
judged by their accuracy on the server's validation set.

As published: clients that are not better than chance are dropped. As released: clients below 1.2
times chance are dropped; if there are none, clients below mean - 1.5 deviations of the others, not
counting the best one, are averaged but do not teach. If no client would be left, all stay.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, compress
from typing import Literal

import torch

from fedstage.algorithm.aggregation.averages import average_weights, client_weights
from fedstage.algorithm.ensemble_trainers import Members
from fedstage.algorithm.exchange.updates import Update, answered
from fedstage.algorithm.global_trainers.teachers import Teacher
from fedstage.settings.aggregation import Aggregation
from fedstage.weights import Weights

MARGIN, DEVIATIONS = 1.2, 1.5

Rule = Literal["none", "as_published", "as_released"]
Flags = dict[int, list[bool]]


@dataclass(frozen=True)
class Fused:
    """Which clients are averaged and which teach: for each group, one flag per client, in order."""

    averaged: Flags
    teaching: Flags

    @property
    def dropped(self) -> int:
        """How many clients do not teach."""
        return sum(flags.count(False) for flags in self.teaching.values())

    def members(self, members: Sequence[Members]) -> list[Members]:
        """Return the members that teach."""
        left = []
        for part in members:
            flags = self.teaching[part.group]
            samples = tuple(compress(part.samples, flags))
            left.append(replace(part, logits=part.logits[torch.tensor(flags)], samples=samples))
        return left

    def models(self, models: Sequence[Teacher]) -> list[Teacher]:
        """Return the models that teach, of all clients that are judged or of none."""
        return [*compress(models, chain.from_iterable(self.teaching.values()))]


def fused(judged: Sequence[Members], labels: torch.Tensor, rule: Rule) -> Fused:
    """Choose among all groups' clients, by their logits on the server's validation set."""
    parts = sorted(judged, key=lambda part: part.group)
    right = [(part.logits.argmax(2) == labels).sum(1).tolist() for part in parts]
    # Correctly rounded: an accuracy of exactly chance must not look higher.
    accuracies = [count / len(labels) for counts in right for count in counts]
    averaged, teaching = map(iter, keep(accuracies, parts[0].logits.shape[2], rule))
    return Fused(
        {part.group: [next(averaged) for _ in part.samples] for part in parts},
        {part.group: [next(teaching) for _ in part.samples] for part in parts},
    )


def keep(accuracies: Sequence[float], classes: int, rule: Rule) -> tuple[list[bool], list[bool]]:
    """Return for each client whether it is averaged, and whether it teaches.

    Accuracies are between 0 and 1.
    """
    if rule == "as_published":
        kept = [accuracy > 1 / classes for accuracy in accuracies]
    else:
        kept = [accuracy >= MARGIN / classes for accuracy in accuracies]
        if all(kept):
            return kept, _without_outliers(accuracies)
    kept = kept if any(kept) else [True] * len(kept)
    return kept, kept


def _without_outliers(accuracies: Sequence[float]) -> list[bool]:
    others = sorted(accuracies)[:-1]
    if not others:
        return [True] * len(accuracies)
    least = statistics.fmean(others) - DEVIATIONS * statistics.pstdev(others)
    return [accuracy >= least for accuracy in accuracies]


def average_of_kept(
    aggregated: Weights,
    updates: Sequence[Update],
    averaged: Sequence[bool],
    settings: Aggregation,
) -> Weights:
    """Return the average of a group's kept clients; the aggregated model if all or none stay."""
    if all(averaged) or not any(averaged):
        return aggregated
    kept = [update for update, flag in zip(answered(updates), averaged, strict=True) if flag]
    return average_weights([update.weights for update in kept], client_weights(settings, kept))
