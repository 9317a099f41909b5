"""Public data: images that a server has, gets or makes, and on which no client trains."""

from typing import Literal

from fedstage.settings.base import ByName, Settings
from fedstage.settings.data import Images, Isic2019


class HeldOut(Settings):
    """The part of the training data that `held_out` set aside, without its labels."""

    name: Literal["held_out"]


class CoreSamples(Settings):
    """The server's own labelled training samples: the `core` of a recipe."""

    name: Literal["core"]


class Generated(Settings):
    """The labelled images that the `generator` of a recipe makes."""

    name: Literal["generated"]


#: Public data: the held-out part, the server's own, what a generator makes, or the training images
#: of another data set.
Public = ByName[HeldOut | CoreSamples | Generated | Images | Isic2019]
