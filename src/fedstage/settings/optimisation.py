"""Schedules, optimisers and losses of clients."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from fedstage.settings.base import (
    Augmentation,
    ByName,
    Choice,
    Fraction,
    Functions,
    NonNegative,
    Positive,
    Rate,
    Settings,
    Share,
)
from fedstage.settings.traits import Lacks, Trait


class Constant(Settings):
    """A constant learning rate."""

    name: Literal["constant"]


class Step(Settings):
    """Multiplied by a factor at some times."""

    name: Literal["step"]
    milestones: Annotated[tuple[Fraction, ...], Field(strict=False, min_length=1)]
    """When, in fractions of the training's steps."""
    factor: Rate = 0.1
    """The factor."""


class Cosine(Settings):
    """Half a cosine down from the learning rate."""

    name: Literal["cosine"]
    final: NonNegative = 0.0
    """Where it ends, as a multiple of the learning rate."""


class Cyclical(Settings):
    """From the learning rate linearly down, again and again."""

    name: Literal["cyclical"]
    cycle: Positive
    """Steps of a cycle."""
    final: NonNegative = 0.0
    """Where a cycle ends, as a multiple of the learning rate."""


Schedule = ByName[Constant | Step | Cosine | Cyclical]


class Optimiser(Settings):
    """Stochastic gradient descent and its schedule, shared by clients and server."""

    optimiser: Literal["sgd", "adam"] = "sgd"
    """The optimiser."""
    learning_rate: Rate
    """Its rate."""
    schedule: Schedule = Constant(name="constant")
    """How the rate changes during training."""
    momentum: Fraction = 0.0
    """Momentum of sgd."""
    nesterov: bool = False
    """Nesterov's momentum."""
    weight_decay: NonNegative = 0.0
    """Weight of the squared parameters."""
    clip_norm: Rate | None = None
    """Largest norm of a step's gradient."""
    batch_size: Positive
    """Samples of a step."""
    augmentation: Augmentation = "none"
    """How images are changed at random."""

    def _faults(self) -> Iterator[str]:
        if self.nesterov and not self.momentum:
            yield "nesterov = true needs momentum > 0"


class LossOfLabels(Choice):
    """The loss that clients minimise."""

    room: ClassVar[str] = "training.losses"
    functions: ClassVar[Functions] = {"loss": ("settings", "classes", "device")}


class CrossEntropy(LossOfLabels):
    """The mean over a batch of -log p_y."""

    name: Literal["cross_entropy"]


class Focal(LossOfLabels):
    """The mean over a batch of w_y (1 - p_y)^gamma (-log p_y)."""

    lacks: ClassVar[Lacks] = {"name": ("", Trait.CROSS_ENTROPY)}
    name: Literal["focal"]
    gamma: NonNegative = 2.0
    """How much less a sample counts the surer the model is."""
    class_weights: Annotated[tuple[Rate, ...], Field(strict=False, min_length=1)] | None = None
    """w_y, a weight for each class, by default 1."""


ClientLoss = ByName[CrossEntropy | Focal]


class Client(Optimiser):
    """A participant's training in one round."""

    lacks: ClassVar[Lacks] = {"optimiser": ("", Trait.SGD), "momentum": ("", Trait.NO_MOMENTUM)}
    epochs: Positive | None = None
    """Epochs over the participant's samples; or give steps."""
    steps: Positive | None = None
    """Steps of the participant; or give epochs."""
    round_decay: Share = 1.0
    """What multiplies the learning rate once a round; `schedule` runs within a round."""
    round_cosine: Positive | None = None
    """Over so many rounds half a cosine multiplies the learning rate down to 0, where it stays."""
    last_batch: Literal["keep", "drop", "drop_single", "merge_single"] = "merge_single"
    """What becomes of the samples that do not fill a batch, or of a single one."""
    batches: Literal["anew", "continued"] = "anew"  # prose: ok
    """Batches are drawn again in every round or, with `steps`, each round resumes the permutation
    of the samples where the previous one stopped.
    """
    loss: ClientLoss = CrossEntropy(name="cross_entropy")
    """What clients minimise."""

    def _faults(self) -> Iterator[str]:
        yield from super()._faults()
        if (self.epochs is None) == (self.steps is None):
            yield "give either epochs or steps"
        if self.batches == "continued" and self.steps is None:
            yield "batches = 'continued': only with steps; epochs end with a round"
