"""The precision in which clients' models are sent and evaluated."""

from typing import ClassVar, Literal

from fedstage.settings.base import ByName, Positive, Settings
from fedstage.settings.traits import Needs, Trait


class NotQuantised(Settings):
    """Models stay in float32."""

    name: Literal["none"]


class Calibration(Settings):
    """A client's training samples that determine ranges of activations."""

    on: Literal["train"] = "train"
    """Samples used for calibration."""
    samples: Positive = 256
    """Number of samples, or all if the client has fewer."""


class Int8(Settings):
    """Post-training static quantisation to 8 bits (FENS, Section 3 and App. B.3)."""

    needs: ClassVar[Needs] = {"name": (Trait.FREE_OUTPUTS,)}
    package: ClassVar[str | None] = "torchao"
    name: Literal["int8"]
    calibration: Calibration = Calibration()
    """Samples that determine ranges of activations."""
    weights: Literal["per_channel", "per_tensor"] = "per_channel"
    """Weights are symmetric about 0, with one scale per output channel or, as released, one scale
    per tensor.
    """
    reduce_range: bool = True
    """Whether activations span the calibration's range in steps 0 to 127, as released, or 0 to 255.
    """


Quantisation = ByName[NotQuantised | Int8]
