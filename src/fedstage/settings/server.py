"""Settings of a server: how students learn from an ensemble in each round."""

from collections.abc import Iterator, Mapping
from typing import ClassVar, Literal

from fedstage.settings.base import Count, NonNegative, Positive, Probability, Rate, Settings
from fedstage.settings.optimisation import Optimiser


class WeightAverage(Settings):
    """Stochastic weight averaging of a student's weights."""

    start: Count = 0
    """Number of steps before the first weights that are averaged."""
    every: Positive = 25
    """Interval, in steps, between the weights that are averaged."""


class EarlyStopping(Settings):
    """Early stopping by the accuracy on the server's validation set, with the best weights kept."""

    every: Positive = 100
    """Interval, in steps, between measurements of accuracy; the last step is always measured."""
    patience: Positive = 1000
    """Number of steps without a better accuracy after which training stops."""


class Buffer(Settings):
    """A frozen copy of the student as a second teacher (buffered distillation)."""

    weight: NonNegative = 1.0
    """Weight of the copy as a teacher."""
    refresh: Literal["round", "epoch"] = "round"
    """When the student is copied: at the start of a round's distillation, or at the start of each
    epoch over the public samples (melting).
    """
    after: Count = 0
    """Number of initial rounds without a buffer."""


class MovingAverage(Settings):
    """The student ends as the moving average w_bar <- decay w_bar + (1 - decay) w of its weights.

    The average starts at the student's initial weights.
    """

    decay: Probability = 0.9
    """Decay of the moving average."""
    every: Literal["step", "epoch", "round"] = "step"
    """When the average moves: after each step, after each epoch over the public samples, or once at
    the end of the round's distillation.
    """


class FactorTransfer(Settings):
    """Factor transfer (Kim et al. 2018): the distance between normalised factors.

    The network that extracts the teacher's factors is trained in each round, with the optimiser of
    the server.
    """

    weight: NonNegative = 500.0
    """Weight of the distance between factors."""
    epochs: Positive = 5
    """Number of epochs over the public samples for which the extractor of the teacher's factors is
    trained.
    """
    learning_rate: Rate = 0.1
    """Learning rate of the extractor of the teacher's factors."""


class TaskArithmetic(Settings):
    """A student per group of teachers, merged by the best weights on the server's validation set.

    Weights are not negative and sum to 1 (TAKFL).
    """

    parts: Positive = 10
    """Number of equal parts into which weights are divided: each is a multiple of 1 / `parts`."""


class Server(Optimiser):
    """Distillation on the server in each round, on batches of public data."""

    uses: ClassVar[Mapping[str, str]] = {
        "swa": "algorithm.global_trainers.kept_weights",
        "early_stopping": "algorithm.global_trainers.kept_weights",
        "drop_worst": "algorithm.global_trainers.drop_worst",
        "buffer": "algorithm.global_trainers.buffer",
        "moving_average": "algorithm.global_trainers.kept_weights",
        "factor_transfer": "algorithm.global_trainers.factor_transfer",
        "task_arithmetic": "algorithm.global_trainers.task_arithmetic",
    }
    steps: Positive | None = None
    """Number of steps per distillation; alternatively give `epochs`."""
    epochs: Positive | None = None
    """Number of epochs per distillation, each over the full batches of one permutation;
    alternatively give `steps`.
    """
    samples_a_round: Positive | None = None
    """Number of public samples that each round uses, drawn again each time; by default all."""
    temperature: Rate = 4.0
    """Temperature of the teacher's and the student's logits."""
    tau_squared: bool = True
    """Whether the loss is multiplied by the squared temperature, as is customary."""
    sharpening: Rate = 1.0
    """Power to which the teacher's probabilities are raised first."""
    teacher_images: Literal["original", "augmented"] = "original"
    """Whether the teacher's logits are of the original images, or of the student's images after
    `augmentation`.
    """
    labels: NonNegative = 0.0
    """Weight of the mean cross entropy with the labels of the public samples."""
    buffer: Buffer | None = None
    """Frozen copy of the student as a second teacher; by default none."""
    factor_transfer: FactorTransfer | None = None
    """Loss by which students also learn factors of the teachers' feature maps; by default none."""
    swa: WeightAverage | None = None
    """Mean of the student's weights over steps, which becomes its final weights; by default none.
    """
    moving_average: MovingAverage | None = None
    """Moving average of the student's weights, which becomes its final weights; by default none."""
    early_stopping: EarlyStopping | None = None
    """Early stopping, after which the student has its best weights; by default none."""
    task_arithmetic: TaskArithmetic | None = None
    """Merge of students that learn from one group's clients each; by default there is one student
    of all groups' clients.
    """
    drop_worst: Literal["none", "as_published", "as_released"] = "none"
    """Whether the worst client models are left out of the fusion, as published or as released."""

    def _faults(self) -> Iterator[str]:
        if (self.epochs is None) == (self.steps is None):
            yield "give either epochs or steps"
        kept = ("swa", "moving_average", "early_stopping")
        chosen = [key for key in kept if getattr(self, key) is not None]
        if len(chosen) > 1:
            yield f"{' and '.join(chosen)}: give one, each says which weights are kept"
        if self.swa is not None and self.steps is not None:
            most = self.steps - self.swa.every
            if self.swa.start > most:
                yield f"swa.start = {self.swa.start}: at most steps - swa.every = {most}"
        if self.teacher_images == "augmented" and self.augmentation == "none":
            yield "teacher_images = 'augmented': nothing is augmented, augmentation = 'none'"
