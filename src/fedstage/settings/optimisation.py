"""Schedules, optimisers and losses of clients and the server."""

from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from fedstage.settings.base import (
    Augmentation,
    ByName,
    Choice,
    Count,
    Fraction,
    NonNegative,
    Positive,
    Rate,
    Settings,
)


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


class WeightAverage(Settings):
    """Stochastic weight averaging: the mean weights of every `every`-th step after `start`."""

    start: Count = 0
    every: Positive = 25


class EarlyStopping(Settings):
    """Stop after `patience` steps without a better accuracy on the server's validation set.

    It is measured after every `every`-th step and the last; the best weights are kept.
    """

    every: Positive = 100
    patience: Positive = 1000


class Server(Optimiser):
    """Distillation on the server, each round: `steps` on batches of public data.

    `tau_squared` multiplies the loss by the squared temperature, as is customary. The teacher's
    probabilities are first raised to the power `sharpening`. `augmentation` changes the student's
    images; the teacher's logits are of the original ones. With `samples_a_round` each round uses as
    many of the public samples, drawn anew. `drop_worst` leaves the worst client
    models out of the fusion.
    """

    uses: ClassVar[Mapping[str, str]] = {
        "swa": "algorithm.global_trainers.swa",
        "early_stopping": "algorithm.global_trainers.early_stopping",
        "drop_worst": "algorithm.global_trainers.drop_worst",
    }
    steps: Positive
    samples_a_round: Positive | None = None
    temperature: Rate = 4.0
    tau_squared: bool = True
    sharpening: Rate = 1.0
    swa: WeightAverage | None = None
    early_stopping: EarlyStopping | None = None
    drop_worst: Literal["none", "as_published", "as_released"] = "none"

    def _faults(self) -> Iterator[str]:
        yield from super()._faults()
        if self.swa is not None and self.early_stopping is not None:
            yield "swa and early_stopping: give one, each says which weights are kept"
        if self.swa is not None and self.swa.start + self.swa.every > self.steps:
            yield (
                f"swa.start = {self.swa.start}: at most steps - swa.every = "
                f"{self.steps - self.swa.every}, so that there are weights to average"
            )


def needs_validation(server: Server) -> bool:
    """Whether a distillation reads the server's validation set."""
    return server.early_stopping is not None or server.drop_worst != "none"
