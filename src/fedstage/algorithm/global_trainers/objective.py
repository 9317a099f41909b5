"""What a student minimises: a sum of terms, of the same batch and the same forward pass.

    L(w) = lambda CE( f(x; w), y ) + L_T( f(x; w), teacher ) + mu KL to the buffer + ...

A term looks up by index what is fixed for each public sample (a label, the teacher's logits), and
computes from the pixels what depends on the augmentation. Without further terms a student minimises
`transfers` alone, as `fedstage.training.loop` does by default.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from fedstage.settings.numerics import Numerics
from fedstage.training.passes import Loss, ModelLoss, compute


@dataclass(frozen=True)
class Seen:
    """A batch of public samples as a student sees it, and the student's outputs.

    Attributes
    ----------
    index : torch.Tensor
        The samples' numbers, int64 [b].
    pixels : torch.Tensor
        Normalised and augmented, such as [b, C, H, W].
    logits : torch.Tensor
        The student's logits, [b, classes].
    factors : torch.Tensor, optional
        The translator's output for its last feature maps, [b, C', H', W'].
    """

    index: torch.Tensor
    pixels: torch.Tensor
    logits: torch.Tensor
    factors: torch.Tensor | None = None


Term = Callable[[Seen], torch.Tensor]
#: Returns the targets [b, ...] of pixels [b, C, H, W], with the teachers' models.
LiveTargets = Callable[[torch.Tensor], torch.Tensor]


def sum_of(terms: Sequence[Term], numerics: Numerics) -> ModelLoss:
    """Return the sum of terms as a loss of a model, its pixels and the samples' index as `targets`.

    The model gives logits, or logits and factors.
    """

    def of_model(model: nn.Module, pixels: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        made = compute(model, pixels, numerics)
        parts = made if isinstance(made, tuple) else (made,)
        if numerics.precision == "bf16":
            parts = tuple(part.float() for part in parts)
        seen = Seen(index, pixels, *parts)
        return torch.stack([term(seen) for term in terms]).sum()

    return of_model


def to_labels(labels: torch.Tensor, weight: float) -> Term:
    """Return `weight` times the mean cross entropy to labels [n] of all public samples."""

    def term(seen: Seen) -> torch.Tensor:
        return weight * cross_entropy(seen.logits, labels[seen.index])

    return term


def to_targets(targets: torch.Tensor, loss: Loss) -> Term:
    """Return a loss of logits against targets [n, ...] of all public samples."""

    def term(seen: Seen) -> torch.Tensor:
        return loss(seen.logits, targets[seen.index])

    return term


def to_live_targets(targets_of: LiveTargets, loss: Loss) -> Term:
    """Return a loss of logits against the teachers' targets of the images that are seen."""

    def term(seen: Seen) -> torch.Tensor:
        return loss(seen.logits, targets_of(seen.pixels))

    return term
