"""The precision in which clients' models are sent and evaluated."""

from typing import ClassVar, Literal

from fedstage.settings.base import ByName, Positive, Settings
from fedstage.settings.traits import Needs, Trait


class NotQuantised(Settings):
    """Models stay in float32."""

    name: Literal["none"]


class Calibration(Settings):
    """A client's training samples that give ranges of activations."""

    on: Literal["train"] = "train"
    """The samples."""
    samples: Positive = 256
    """How many, at most all."""


class Int8(Settings):
    """Post-training static quantisation to 8 bits (FENS, Section 3 and App. B.3)."""

    needs: ClassVar[Needs] = {"name": (Trait.FREE_OUTPUTS,)}
    package: ClassVar[str | None] = "torchao"
    name: Literal["int8"]
    calibration: Calibration = Calibration()
    """Samples that give ranges of activations."""
    weights: Literal["per_channel", "per_tensor"] = "per_channel"
    """Weights are symmetric about 0, with a scale for each output channel or, as released, one a
    tensor.
    """
    reduce_range: bool = True
    """Activations span the calibration's range in steps 0 to 127, as released, not 0 to 255."""


Quantisation = ByName[NotQuantised | Int8]
