"""Public data: what a server has, gets or makes of images that no client trains on."""

from typing import Literal

from fedstage.settings.base import ByName, Settings
from fedstage.settings.data import Digits, Isic2019, ParquetData, TorchvisionData


class HeldOut(Settings):
    """The part of the training data that `held_out` set aside, without its labels."""

    name: Literal["held_out"]


class CoreSamples(Settings):
    """The labelled training samples that the server has of its own: `core` of a line."""

    name: Literal["core"]


class Generated(Settings):
    """The labelled images that the `generator` of a line makes."""

    name: Literal["generated"]


#: Public data: the held-out part, the server's own, what a generator makes, or the training images
#: of another data set.
Public = ByName[
    HeldOut | CoreSamples | Generated | Digits | TorchvisionData | ParquetData | Isic2019
]
