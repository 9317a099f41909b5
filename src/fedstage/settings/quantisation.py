"""In which precision clients' models are sent on and asked."""

from typing import Annotated, Literal

from fedstage.settings.base import BY_NAME, IN_SHORT, Positive, Settings


class NotQuantised(Settings):
    """Models stay as they were trained, float32."""

    name: Literal["none"]


class Calibration(Settings):
    """On what the ranges of activations are measured: so many samples of the client's own.

    They are those that its model was trained on, or all where it has fewer; never the test set.
    """

    on: Literal["train"] = "train"
    samples: Positive = 256


class Int8(Settings):
    """Post-training static quantisation to 8 bits (FENS, Section 3 and App. B.3).

    Weights are symmetric about 0, with a scale for each output channel or one a tensor, as
    released. Activations lie between the least and the greatest of the calibration; with
    `reduce_range` they take the numbers 0 to 127, as released, otherwise 0 to 255.
    """

    name: Literal["int8"]
    calibration: Calibration = Calibration()
    weights: Literal["per_channel", "per_tensor"] = "per_channel"
    reduce_range: bool = True


Quantisation = Annotated[NotQuantised | Int8, BY_NAME, IN_SHORT]
