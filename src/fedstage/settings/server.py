"""Settings of a server: how students learn from an ensemble, each round."""

from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from fedstage.settings.base import Count, NonNegative, Positive, Rate, Settings
from fedstage.settings.optimisation import Optimiser
from fedstage.settings.traits import Lacks, Needs, Trait


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


class Buffer(Settings):
    """A frozen copy of the student as a second teacher, `weight` times (buffered distillation).

    It is copied at the start of a round's distillation or anew at the start of each `epoch` over
    the public samples (melting). The first `after` rounds have none.
    """

    weight: NonNegative = 1.0
    refresh: Literal["round", "epoch"] = "round"
    needs: ClassVar[Needs] = {"after": (Trait.ROUNDS,)}
    after: Count = 0


class MovingAverage(Settings):
    """The student ends as the moving average w_bar <- decay w_bar + (1 - decay) w of its weights.

    It starts at the student's start, and moves after each step, each epoch over the public samples
    or once at the end of the round's distillation.
    """

    decay: Annotated[float, Field(ge=0, le=1)] = 0.9
    every: Literal["step", "epoch", "round"] = "step"


class FactorTransfer(Settings):
    """Factor transfer (Kim et al. 2018): `weight` times the distance of normalised factors.

    Factors have `rate` times the channels of the teacher's last feature maps. What extracts the
    teacher's is trained for `epochs` over the public samples in each round, at this `learning_rate`
    and otherwise with the optimiser of the server.
    """

    weight: NonNegative = 500.0
    rate: Annotated[float, Field(gt=0, le=1)] = 0.5
    epochs: Positive = 5
    learning_rate: Rate = 0.1


class Server(Optimiser):
    """Distillation on the server, each round: `steps` or `epochs` on batches of public data.

    An epoch is the full batches of one permutation. `tau_squared` multiplies the loss by the
    squared temperature, as is customary; the student's logits may stay as they are (`softened` =
    ``teacher``). The teacher's probabilities are first raised to the power `sharpening`.
    `augmentation` changes the student's images; the teacher's logits are of the original ones or,
    by `teacher_images`, of the same. With `samples_a_round` each round uses as many of the public
    samples, drawn anew. `drop_worst` leaves the worst client models out of the fusion. `labels`
    weighs the mean cross entropy to the labels of the public samples.
    """

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
    epochs: Positive | None = None
    samples_a_round: Positive | None = None
    temperature: Rate = 4.0
    tau_squared: bool = True
    softened: Literal["both", "teacher"] = "both"
    sharpening: Rate = 1.0
    teacher_images: Literal["original", "augmented"] = "original"
    labels: NonNegative = 0.0
    buffer: Buffer | None = None
    factor_transfer: FactorTransfer | None = None
    swa: WeightAverage | None = None
    moving_average: MovingAverage | None = None
    early_stopping: EarlyStopping | None = None
    drop_worst: Literal["none", "as_published", "as_released"] = "none"

    def _faults(self) -> Iterator[str]:
        yield from super()._faults()
        if (self.epochs is None) == (self.steps is None):
            yield "give either epochs or steps"
        kept = ("swa", "moving_average", "early_stopping")
        chosen = [key for key in kept if getattr(self, key) is not None]
        if len(chosen) > 1:
            yield f"{' and '.join(chosen)}: give one, each says which weights are kept"
        if self.swa is not None and self.steps is not None:
            yield from self._check_swa(self.swa, self.steps)
        if self.teacher_images == "augmented" and self.augmentation == "none":
            yield "teacher_images = 'augmented': nothing is augmented, augmentation = 'none'"

    def _check_swa(self, swa: WeightAverage, steps: int) -> Iterator[str]:
        if swa.start + swa.every > steps:
            yield (
                f"swa.start = {swa.start}: at most steps - swa.every = {steps - swa.every}, so "
                "that there are weights to average"
            )


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
    """Return the settings of a round: those without the buffer in rounds that have none yet."""
    if server.buffer is None or round_ > server.buffer.after:
        return server
    return server.model_copy(update={"buffer": None})
