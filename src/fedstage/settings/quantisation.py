"""The precision in which clients' models are sent and evaluated."""

from typing import ClassVar, Literal

from fedstage.settings.base import ByName, Settings


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
