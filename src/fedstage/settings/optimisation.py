"""Learning-rate schedules, optimisers and losses of clients."""

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


class Constant(Settings):
    """A constant learning rate."""

    name: Literal["constant"]


class Step(Settings):
    """The learning rate is multiplied by a factor at given times."""

    name: Literal["step"]
    milestones: Annotated[tuple[Fraction, ...], Field(strict=False, min_length=1)]
    """Times at which the rate is multiplied, as fractions of the training's steps."""
    factor: Rate = 0.1
    """Factor by which the rate is multiplied."""


class Cosine(Settings):
    """The learning rate falls along half a cosine."""

    name: Literal["cosine"]
    final: NonNegative = 0.0
    """Final rate, as a multiple of the learning rate."""


class Cyclical(Settings):
    """The learning rate falls linearly in each cycle, and starts again."""

    name: Literal["cyclical"]
    cycle: Positive
    """Length of a cycle, in steps."""
    final: NonNegative = 0.0
    """Rate at the end of a cycle, as a multiple of the learning rate."""


Schedule = ByName[Constant | Step | Cosine | Cyclical]


class Optimiser(Settings):
    """Gradient descent and its schedule, with settings shared by clients and server."""

    optimiser: Literal["sgd", "adam"] = "sgd"
    """Optimiser: stochastic gradient descent or Adam."""
    learning_rate: Rate
    """Learning rate of the optimiser."""
    schedule: Schedule = Constant(name="constant")
    """How the learning rate changes during training; by default it is constant."""
    momentum: Fraction = 0.0
    """Momentum of stochastic gradient descent."""
    nesterov: bool = False
    """Whether to use Nesterov's momentum."""
    weight_decay: NonNegative = 0.0
    """Weight of the squared parameters (weight decay)."""
    clip_norm: Rate | None = None
    """Maximum norm of a step's gradient; by default it is not clipped."""
    batch_size: Positive
    """Samples per step."""
    augmentation: Augmentation = "none"
    """How images are changed at random during training."""


class LossOfLabels(Choice):
    """The loss that clients minimise."""

    room: ClassVar[str] = "training.losses"
    functions: ClassVar[Functions] = {"loss": ("settings", "classes", "device")}


class CrossEntropy(LossOfLabels):
    """Cross entropy: the mean over a batch of -log p_y."""

    name: Literal["cross_entropy"]


class Focal(LossOfLabels):
    """Focal loss: the mean over a batch of w_y (1 - p_y)^gamma (-log p_y)."""

    name: Literal["focal"]
    gamma: NonNegative = 2.0
    """Exponent that makes samples count less if the model is sure of them."""
    class_weights: Annotated[tuple[Rate, ...], Field(strict=False, min_length=1)] | None = None
    """Weights w_y, one for each class; by default 1."""


ClientLoss = ByName[CrossEntropy | Focal]


class Client(Optimiser):
    """A participant's training in one round."""

    epochs: Positive | None = None
    """Number of epochs over the participant's samples; alternatively give `steps`."""
    steps: Positive | None = None
    """Number of the participant's training steps; alternatively give `epochs`."""
    round_decay: Share = 1.0
    """Factor by which the learning rate is multiplied each round; `schedule` runs within a round.
    """
    round_cosine: Positive | None = None
    """Number of rounds over which half a cosine lowers the learning rate to 0, where it stays; by
    default none.
    """
    last_batch: Literal["keep", "drop", "drop_single", "merge_single"] = "merge_single"
    """What happens to the samples that do not fill a batch, or to a single remaining sample."""
    batches: Literal["anew", "continued"] = "anew"  # prose: ok
    """Whether batches are drawn again in every round or, with `steps`, each round resumes the
    permutation of the samples where the previous one stopped.
    """
    loss: ClientLoss = CrossEntropy(name="cross_entropy")
    """Loss that clients minimise."""

    def _faults(self) -> Iterator[str]:
        if (self.epochs is None) == (self.steps is None):
            yield "give either epochs or steps"
