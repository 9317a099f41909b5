"""Settings of a server: how students learn from an ensemble, each round."""

from collections.abc import Iterator, Mapping
from typing import ClassVar, Literal

from fedstage.settings.base import Count, NonNegative, Positive, Probability, Rate, Settings, Share
from fedstage.settings.optimisation import Optimiser
from fedstage.settings.traits import Lacks, Needs, Trait


class WeightAverage(Settings):
    """Stochastic weight averaging."""

    start: Count = 0
    """Steps before the first weights that count."""
    every: Positive = 25
    """The mean is over the weights of every so many steps."""


class EarlyStopping(Settings):
    """Stop early, by the accuracy on the server's validation set; the best weights are kept."""

    every: Positive = 100
    """Accuracy is measured after every so many steps, and the last."""
    patience: Positive = 1000
    """Stop after so many steps without a better accuracy."""


class Buffer(Settings):
    """A frozen copy of the student as a second teacher (buffered distillation)."""

    weight: NonNegative = 1.0
    """So many times the copy teaches."""
    refresh: Literal["round", "epoch"] = "round"
    """It is copied at the start of a round's distillation, or of each epoch over the public samples
    (melting).
    """
    needs: ClassVar[Needs] = {"after": (Trait.ROUNDS,)}
    after: Count = 0
    """The first rounds, which have none."""


class MovingAverage(Settings):
    """The student ends as the moving average w_bar <- decay w_bar + (1 - decay) w of its weights.

    It starts at the student's start.
    """

    decay: Probability = 0.9
    """The decay."""
    every: Literal["step", "epoch", "round"] = "step"
    """It moves after each step, each epoch over the public samples or once at the end of the
    round's distillation.
    """


class FactorTransfer(Settings):
    """Factor transfer (Kim et al. 2018): the distance of normalised factors.

    What extracts the teacher's factors is trained in each round, with the optimiser of the server.
    """

    weight: NonNegative = 500.0
    """Weight of the distance."""
    rate: Share = 0.5
    """Factors have so many times the channels of the teacher's last feature maps."""
    epochs: Positive = 5
    """Epochs over the public samples that what extracts factors is trained for."""
    learning_rate: Rate = 0.1
    """Rate of that training."""


class Server(Optimiser):
    """Distillation on the server, each round, on batches of public data."""

    uses: ClassVar[Mapping[str, str]] = {
        "swa": "algorithm.global_trainers.swa",
        "early_stopping": "algorithm.global_trainers.early_stopping",
        "drop_worst": "algorithm.global_trainers.drop_worst",
        "buffer": "algorithm.global_trainers.buffer",
        "moving_average": "algorithm.global_trainers.ema",
        "factor_transfer": "algorithm.global_trainers.factor_transfer",
    }
    needs: ClassVar[Needs] = {
        **dict.fromkeys(("labels", "swa", "moving_average", "early_stopping"), (Trait.KEPT,)),
        **dict.fromkeys(("teacher_images", "factor_transfer"), (Trait.LIVE,)),
        "buffer": (Trait.BUFFERED,),
        "drop_worst": (Trait.JUDGED,),
        "samples_a_round": (Trait.SUBSETS,),
        "augmentation": (Trait.AUGMENTED,),
    }
    lacks: ClassVar[Lacks] = {"no steps": ("", Trait.STEPS), "no epochs": ("", Trait.EPOCHS)}
    steps: Positive | None = None
    """Steps of a distillation; or give epochs."""
    epochs: Positive | None = None
    """Epochs of a distillation, the full batches of one permutation each; or give steps."""
    samples_a_round: Positive | None = None
    """Each round uses so many of the public samples, drawn again."""
    temperature: Rate = 4.0
    """Temperature of the teacher's logits and the student's."""
    tau_squared: bool = True
    """Multiply the loss by the squared temperature, as is customary."""
    softened: Literal["both", "teacher"] = "both"
    """Whose logits the temperature divides."""
    sharpening: Rate = 1.0
    """Power to which the teacher's probabilities are first raised."""
    teacher_images: Literal["original", "augmented"] = "original"
    """The teacher's logits are of the original images, or of the student's, after
    `augmentation`.
    """
    labels: NonNegative = 0.0
    """Weight of the mean cross entropy to the labels of the public samples."""
    buffer: Buffer | None = None
    """A copy of the student as a second teacher."""
    factor_transfer: FactorTransfer | None = None
    """Also learn factors of the teachers' feature maps."""
    swa: WeightAverage | None = None
    """End with a mean of the student's weights."""
    moving_average: MovingAverage | None = None
    """End with a moving average of the student's weights."""
    early_stopping: EarlyStopping | None = None
    """End with the best weights."""
    drop_worst: Literal["none", "as_published", "as_released"] = "none"
    """Leave the worst client models out of the fusion."""

    def _faults(self) -> Iterator[str]:
        yield from super()._faults()
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


def needs_validation(server: Server) -> bool:
    """Whether a distillation reads the server's validation set."""
    return server.early_stopping is not None or server.drop_worst != "none"


def has_live_teachers(server: Server) -> bool:
    """Whether the teacher's logits are of the images that the student sees, so not cached."""
    return server.teacher_images == "augmented"


def has_factors(server: Server) -> bool:
    """Whether students learn factors of the teachers' feature maps."""
    return server.factor_transfer is not None and server.factor_transfer.weight > 0


def adds_terms(server: Server) -> bool:
    """Whether students minimise more than a loss of their logits against targets."""
    buffered = server.buffer is not None and server.buffer.weight > 0
    return bool(server.labels) or buffered or has_factors(server) or has_live_teachers(server)


#: What students on the server need with these settings.
STUDENTS: Needs = {
    "labels": (Trait.LABELS,),
    "early_stopping": (Trait.VALIDATION,),
    "drop_worst": (Trait.VALIDATION, Trait.CLIENTS, Trait.PLAIN_AVERAGE),
    "teacher_images": (Trait.MODELS,),
    "factor_transfer.weight": (Trait.MODELS,),
}
_SUMMANDS = ("labels", "buffer.weight", "factor_transfer.weight", "teacher_images")
#: What students of rounds lack with these settings.
ROUND_STUDENTS: Lacks = {
    **dict.fromkeys(_SUMMANDS, ("whose sum of losses is not compiled", Trait.COMPILED)),
    "teacher_images=augmented": ("whose ensemble is weighted on the CPU", Trait.GRAPHS),
    "drop_worst": ("which chooses among logits", Trait.MODELS),
}


def in_round(server: Server, round_: int) -> Server:
    """Return the settings of a round: without the buffer in rounds that have none yet."""
    if server.buffer is None or round_ > server.buffer.after:
        return server
    return server.model_copy(update={"buffer": None})
