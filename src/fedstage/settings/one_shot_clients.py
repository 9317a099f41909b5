"""What clients of one-shot learning learn besides the classes, and how their models are sent.

An additional class, for samples unlike all that a client has (FedOV, Diao et al. 2023); one
prototype per class, with features that are similar in a class (FAFI); models in 8 bits.
"""

from collections.abc import Iterator
from typing import ClassVar, Literal

from fedstage.settings.base import ByName, Choice, Functions, NonNegative, Positive, Rate, Settings

#: Fields of clients that train to the end in one go, and the modules that the fields need.
OF_ONE_SHOT = {
    "quantisation": "models.int8",
    "unknown": "algorithm.one_shot.unknown_class",
    "prototypes": "algorithm.one_shot.prototype_learning",
}


class OutlierSource(Choice):
    """How samples of the unknown class are made from a client's own samples of these kinds."""

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
    """Signed gradient steps that make outliers look known."""

    steps: Positive = 5
    """Number of gradient steps."""
    step: Rate = 0.002
    """Size of a step, for pixels from 0 to 1, or for features as they are."""
    radius: Rate = 0.5
    """Maximum distance by which each pixel or feature of an outlier is moved."""


class Unknown(Settings):
    """How clients learn to recognise unknown samples, with one more output than classes (FedOV).

    That output is the label of outliers, once as they are and once after an attack.
    """

    more_outputs: ClassVar[int] = 1
    outliers: Outliers | None = Corruptions(name="corruptions")
    """How samples of the unknown class are made; null: there are none."""
    attack: Attack | None = Attack()
    """Attack that makes outliers look known; null: none."""
    second: NonNegative = 1.0
    """Weight of the loss by which the unknown class ranks second for the client's samples."""
    mixed: NonNegative = 0.01
    """Weight of the loss on mixtures of two samples of different classes, whose label is the
    unknown class.
    """

    def _faults(self) -> Iterator[str]:
        if self.attack is not None and self.outliers is None:
            yield "attack: needs outliers, which it changes; set attack to null"


class Prototypes(Settings):
    """How clients learn one prototype per class in place of the last layer (FAFI).

    A model sees two views of each batch.
    """

    more_outputs: ClassVar[Literal["features"]] = "features"
    near: NonNegative = 1.0
    """Weight of the cross entropy of a feature's similarities to the prototypes, added to the cross
    entropy of the logits.
    """
    apart: NonNegative = 1.0
    """Weight of the cross entropy of each prototype's similarities to all prototypes."""
    alike: NonNegative = 1.0
    """Weight of the contrastive loss of features of the same class against others."""
    temperature: Rate = 0.07
    """Temperature of the contrastive loss."""


class NotQuantised(Settings):
    """Models stay in float32."""

    name: Literal["none"]


class Int8(Settings):
    """Post-training static quantisation to 8 bits (FENS, Section 3 and App. B.3).

    Weights are symmetric about 0, with one scale per output channel. Activations span the range of
    a client's training samples, in steps 0 to 127 as released.
    """

    package: ClassVar[str | None] = "torchao"
    name: Literal["int8"]


Quantisation = ByName[NotQuantised | Int8]
