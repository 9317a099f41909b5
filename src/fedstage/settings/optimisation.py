"""Schedules, optimisers, and how clients and the server train."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from fedstage.settings.base import (
    BY_NAME,
    IN_SHORT,
    Count,
    Fraction,
    NonNegative,
    Positive,
    Rate,
    Settings,
)


class Constant(Settings):
    """The learning rate as it is."""

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


Schedule = Annotated[Constant | Step | Cosine | Cyclical, BY_NAME, IN_SHORT]


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
    augmentation: Literal["none", "flip", "crop_flip"] = "none"

    @model_validator(mode="after")
    def _nesterov_needs_momentum(self) -> "Optimiser":
        if self.nesterov and not self.momentum:
            raise ValueError("nesterov = true needs momentum > 0")
        return self


class CrossEntropy(Settings):
    """The mean over a batch of -log p_y."""

    name: Literal["cross_entropy"]


class Focal(Settings):
    """The mean over a batch of w_y (1 - p_y)^gamma (-log p_y); without `class_weights` w_y is 1."""

    name: Literal["focal"]
    gamma: NonNegative = 2.0
    class_weights: Annotated[tuple[Rate, ...], Field(strict=False, min_length=1)] | None = None


ClientLoss = Annotated[CrossEntropy | Focal, BY_NAME, IN_SHORT]


class Client(Optimiser):
    """A participant's training in one round: `epochs` over its data, or `steps`.

    `schedule` runs within a round; `round_decay` multiplies the learning rate once a round. Batches
    are drawn `anew` in every round or, of `steps`, `continued`: each round goes on in the
    permutation of the samples where the round before has stopped.
    """

    epochs: Positive | None = None
    steps: Positive | None = None
    round_decay: Annotated[float, Field(gt=0, le=1)] = 1.0
    last_batch: Literal["keep", "drop", "drop_single", "merge_single"] = "merge_single"
    batches: Literal["anew", "continued"] = "anew"
    loss: ClientLoss = CrossEntropy(name="cross_entropy")

    @model_validator(mode="after")
    def _one_length(self) -> "Client":
        if (self.epochs is None) == (self.steps is None):
            raise ValueError("give either epochs or steps")
        if self.batches == "continued" and self.steps is None:
            raise ValueError("batches = 'continued': only with steps; epochs end with a round")
        return self


class WeightAverage(Settings):
    """Stochastic weight averaging: the mean of the weights after each `every`-th step.

    Steps up to `start` do not count.
    """

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

    `tau_squared` multiplies the loss by the squared temperature, the customary form. `sharpening`
    is the power that the teacher's probabilities are raised to before. `augmentation` is of the
    images that the student sees: what the teacher says is of the image as it is. `drop_worst`
    leaves the worst client models out of the fusion.
    """

    steps: Positive
    temperature: Rate = 4.0
    tau_squared: bool = True
    sharpening: Rate = 1.0
    swa: WeightAverage | None = None
    early_stopping: EarlyStopping | None = None
    drop_worst: Literal["none", "as_published", "as_released"] = "none"

    @model_validator(mode="after")
    def _one_choice_of_weights(self) -> "Server":
        if self.swa is not None and self.early_stopping is not None:
            raise ValueError("swa and early_stopping: give one, each says which weights are kept")
        if self.swa is not None and self.swa.start + self.swa.every > self.steps:
            raise ValueError(
                f"swa.start = {self.swa.start}: at most steps - swa.every = "
                f"{self.steps - self.swa.every}, so that there are weights to average"
            )
        return self


def needs_validation(server: Server) -> bool:
    """Whether a distillation reads the server's validation set."""
    return server.early_stopping is not None or server.drop_worst != "none"
