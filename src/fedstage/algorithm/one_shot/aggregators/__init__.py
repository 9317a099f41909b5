"""Aggregation rules: from the logits of the clients' models to one prediction (FENS, Eq. 1).

    f(x) = f_lambda( z_1(x), ..., z_M(x) ),     z_i in R^C the logits of client i's model

A rule is a module of the functions below, found by the name of its settings. All are pure: what a
rule has learnt or counted is a dictionary of tensors, lambda. `combine` may be differentiated by
it, so that a rule can be trained, in rounds or by a server, and can be the teacher of a student.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, cast

import torch

from fedstage.settings.aggregators import Aggregator
from fedstage.storage.tensors import Weights


@dataclass(frozen=True)
class Knowledge:
    """What a rule may know before it is trained.

    Attributes
    ----------
    label_counts : torch.Tensor
        int64 [M, C]: n_i^c, the samples of class c that client i's model was trained on.
    shape : tuple of int
        Of a sample: [channels, height, width] of an image.
    votes : torch.Tensor or None
        int64 [M, C, C]: how often model i votes for c (second) where the truth is r (third), summed
        over the clients' own counts; only for rules that vote.
    """

    label_counts: torch.Tensor
    shape: tuple[int, ...]
    votes: torch.Tensor | None = None

    @property
    def members(self) -> int:
        """M, the number of client models."""
        return self.label_counts.shape[0]

    @property
    def classes(self) -> int:
        """C, the number of classes."""
        return self.label_counts.shape[1]


class AggregationRule(Protocol):
    """The functions that a rule's module has."""

    def parameters(self, settings: Any, known: Knowledge, generator: torch.Generator) -> Weights:
        """Return lambda_0: all of it, or what training starts from, float32."""

    def combine(
        self,
        settings: Any,
        parameters: Weights,
        logits: torch.Tensor,
        pixels: torch.Tensor | None,
    ) -> torch.Tensor:
        """Return logits [n, C] from the members' [M, n, C].

        `pixels` are the normalised images [n, channels, height, width], for a rule that sees them.
        """


#: A rule with its settings: lambda, logits [M, n, C] and pixels to logits [n, C].
Combine = Callable[[Weights, torch.Tensor, torch.Tensor | None], torch.Tensor]


def rule(settings: Aggregator) -> AggregationRule:
    """Return the module of a rule."""
    return cast(
        AggregationRule, import_module(f"fedstage.algorithm.one_shot.aggregators.{settings.name}")
    )


def combination(settings: Aggregator) -> Combine:
    """Return what a rule computes, as a function of its parameters and of logits."""
    module = rule(settings)

    def combine(
        parameters: Weights, logits: torch.Tensor, pixels: torch.Tensor | None
    ) -> torch.Tensor:
        return module.combine(settings, parameters, logits, pixels)

    return combine


def sees_images(settings: Aggregator) -> bool:
    """Whether a rule needs the images, not only what clients' models say about them."""
    return settings.name == "moe"
