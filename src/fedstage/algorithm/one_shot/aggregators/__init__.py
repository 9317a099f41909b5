"""Aggregation rules, which combine the logits of clients' models into one prediction (FENS, Eq. 1).

    f(x) = f_lambda( z_1(x), ..., z_M(x) ),     z_i in R^C the logits of client i's model

A rule is a module with the functions below, found by the name of its settings. All are pure: what a
rule has learnt or counted is in lambda, a dictionary of tensors. `combine` is differentiable with
respect to lambda, so that a rule can be trained, in rounds or by a server.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, cast

import torch

from fedstage.settings.aggregators import Aggregator
from fedstage.settings.base import implementation
from fedstage.weights import Weights


@dataclass(frozen=True)
class Knowledge:
    """The input from which a rule's first parameters are computed.

    `label_counts`, int64 [M, C], are n_i^c, the number of samples of class c on which client i's
    model was trained. `votes`, int64 [M, C, C], count how often model i votes for c (second axis)
    where the truth is r (third axis), summed over the clients' own counts; only for rules that
    vote.
    """

    label_counts: torch.Tensor
    shape: tuple[int, ...]  # of a sample: [channels, height, width] of an image
    votes: torch.Tensor | None = None
    prototypes: torch.Tensor | None = None  # float32 [M, C, d], where clients learn prototypes

    @property
    def members(self) -> int:
        """M, the number of client models."""
        return self.label_counts.shape[0]

    @property
    def classes(self) -> int:
        """C, the number of classes."""
        return self.label_counts.shape[1]


class AggregationRule(Protocol):
    """The functions of a rule's module."""

    def parameters(self, settings: Any, known: Knowledge, generator: torch.Generator) -> Weights:
        """Return lambda_0, float32: the final parameters, or the start of training."""

    def combine(
        self, settings: Any, parameters: Weights, logits: torch.Tensor, pixels: torch.Tensor | None
    ) -> torch.Tensor:
        """Return logits [n, C] from the members' [M, n, C].

        `pixels` are the normalised images [n, channels, height, width], for a rule that uses them.
        """


#: A rule with its settings: maps lambda, logits [M, n, C] and pixels to logits [n, C].
Combine = Callable[[Weights, torch.Tensor, torch.Tensor | None], torch.Tensor]


def rule(settings: Aggregator) -> AggregationRule:
    """Return the module of a rule."""
    return cast(AggregationRule, implementation(settings))


def combination(settings: Aggregator) -> Combine:
    """Return a rule with its settings, as a function of its parameters, logits and pixels."""
    return partial(rule(settings).combine, settings)
