"""Schedules, optimisers and losses of clients."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from fedstage.settings.base import (
    Augmentation,
    ByName,
    Choice,
    Fraction,
    NonNegative,
    Positive,
    Rate,
    Settings,
)
from fedstage.settings.traits import Lacks, Trait


class Constant(Settings):
    """A constant learning rate."""

    name: Literal["constant"]


class Step(Settings):
    """Multiplied by `factor` after each of `milestones`, fractions of the training's steps."""

    name: Literal["step"]
    milestones: Annotated[tuple[Fraction, ...], Field(strict=False, min_length=1)]
    factor: Rate = 0.1


class Cosine(Settings):
    """Half a cosine from the learning rate down to `final` times it."""

    name: Literal["cosine"]
    final: NonNegative = 0.0


class Cyclical(Settings):
    """From the learning rate linearly down to `final` times it, anew every `cycle` steps."""

    name: Literal["cyclical"]
    cycle: Positive
    final: NonNegative = 0.0


Schedule = ByName[Constant | Step | Cosine | Cyclical]


class Optimiser(Settings):
    """Stochastic gradient descent and its schedule, shared by clients and server."""

    optimiser: Literal["sgd", "adam"] = "sgd"
    learning_rate: Rate
    schedule: Schedule = Constant(name="constant")
    momentum: Fraction = 0.0
    nesterov: bool = False
    weight_decay: NonNegative = 0.0
    clip_norm: Rate | None = None
    batch_size: Positive
    augmentation: Augmentation = "none"

    def _faults(self) -> Iterator[str]:
        if self.nesterov and not self.momentum:
            yield "nesterov = true needs momentum > 0"


class LossOfLabels(Choice):
    """The loss that clients minimise."""

    room: ClassVar[str] = "training.losses"


class CrossEntropy(LossOfLabels):
    """The mean over a batch of -log p_y."""

    name: Literal["cross_entropy"]


class Focal(LossOfLabels):
    """The mean over a batch of w_y (1 - p_y)^gamma (-log p_y); without `class_weights` w_y is 1."""

    lacks: ClassVar[Lacks] = {"name": ("", Trait.CROSS_ENTROPY)}
    name: Literal["focal"]
    gamma: NonNegative = 2.0
    class_weights: Annotated[tuple[Rate, ...], Field(strict=False, min_length=1)] | None = None


ClientLoss = ByName[CrossEntropy | Focal]


class Client(Optimiser):
    """A participant's training in one round: `epochs` over its data, or `steps`.

    `schedule` runs within a round; `round_decay` multiplies the learning rate once a round. Batches
    are drawn `anew` in every round or, with `steps`, `continued`: each round resumes the
    permutation of the samples where the previous one stopped.
    """

    lacks: ClassVar[Lacks] = {"optimiser": ("", Trait.SGD), "momentum": ("", Trait.NO_MOMENTUM)}
    epochs: Positive | None = None
    steps: Positive | None = None
    round_decay: Annotated[float, Field(gt=0, le=1)] = 1.0
    last_batch: Literal["keep", "drop", "drop_single", "merge_single"] = "merge_single"
    batches: Literal["anew", "continued"] = "anew"
    loss: ClientLoss = CrossEntropy(name="cross_entropy")

    def _faults(self) -> Iterator[str]:
        yield from super()._faults()
        if (self.epochs is None) == (self.steps is None):
            yield "give either epochs or steps"
        if self.batches == "continued" and self.steps is None:
            yield "batches = 'continued': only with steps; epochs end with a round"
