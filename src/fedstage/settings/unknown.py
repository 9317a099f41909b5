"""One more class, for samples unlike all that a client has (FedOV, Diao et al. 2023)."""

from collections.abc import Iterator
from typing import ClassVar, Literal

from fedstage.settings.base import ByName, Choice, Functions, NonNegative, Positive, Rate, Settings
from fedstage.settings.data import Data
from fedstage.settings.models import Model
from fedstage.settings.traits import UNRECORDED, Lacks, Needs, Trait

#: Fields of clients that train to the end, and the modules that they need.
OF_ONE_SHOT = {
    "quantisation": "models.int8",
    "unknown": "algorithm.one_shot.unknown_class",
    "prototypes": "algorithm.one_shot.prototype_learning",
}


class OutlierSource(Choice):
    """What samples of the unknown class are made from, out of a client's own of these kinds."""

    room: ClassVar[str] = "algorithm.one_shot.outliers"
    functions: ClassVar[Functions] = {"make": ("settings", "samples", "generator")}
    samples: ClassVar[tuple[str, ...]] = ("images",)


class Corruptions(OutlierSource):
    """The client's images, cropped, blurred, erased, cut or turned until they show nothing."""

    name: Literal["corruptions"]


class Noise(OutlierSource):
    """Standard normal numbers in the shape of the client's samples."""

    samples: ClassVar[tuple[str, ...]] = ("images", "features")
    name: Literal["noise"]


Outliers = ByName[Corruptions | Noise]


class Attack(Settings):
    """Signs of gradients that make outliers look known."""

    steps: Positive = 5
    """Steps of gradients."""
    step: Rate = 0.002
    """Size of a step, of pixels from 0 to 1, or of features as they are."""
    radius: Rate = 0.5
    """How far an outlier is moved at most."""


class Unknown(Settings):
    """How clients learn what they do not know, with one more output than classes (FedOV).

    That output is the label of outliers, once as they are and once after an attack.
    """

    needs: ClassVar[Needs] = {"name": (Trait.CROSS_ENTROPY, Trait.FREE_OUTPUTS, Trait.CHOSEN)}
    lacks: ClassVar[Lacks] = {
        "name": ("for which models have one more output", Trait.START_OUTPUTS),
        "changes": ("whose steps have no code for it", *UNRECORDED),
    }
    more_outputs: ClassVar[int] = 1
    outliers: Outliers | None = Corruptions(name="corruptions")
    """What samples of the unknown class are made from."""
    attack: Attack | None = Attack()
    """Makes outliers look known."""
    second: NonNegative = 1.0
    """Weight of the unknown class coming second for the client's samples."""
    mixed: NonNegative = 0.01
    """Weight of two samples of different classes, mixed, whose label is the unknown class."""

    def _faults(self) -> Iterator[str]:
        if self.attack is not None and self.outliers is None:
            yield "attack: needs outliers, which it changes; set attack to null"

    @property
    def changes(self) -> bool:
        """Whether a client minimises more than the loss of its labels."""
        return self.outliers is not None or bool(self.second or self.mixed)


def check_unknown(
    unknown: Unknown,
    data: Data,
    models: tuple[Model, ...],
) -> Iterator[str]:
    """Yield what does not go with clients that learn an unknown class."""
    kind, source = data.samples, unknown.outliers
    if source is not None and kind not in source.samples:
        yield (
            f"unknown.outliers = {source.name!r}: made from {' or '.join(source.samples)}, and the "
            f"samples of data = {data.name} are {kind}"
        )
    for model in models:
        if getattr(model, "outputs", None) == 1:
            yield f"model = {model.name!r}: outputs = 1: not with unknown, which needs one more"
