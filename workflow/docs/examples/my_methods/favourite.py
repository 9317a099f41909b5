"""A fixed share for the first member; the others divide the rest equally."""

from typing import ClassVar, Literal

import torch

from fedstage.settings.base import Rate
from fedstage.settings.ensembles import Ensemble


class Favourite(Ensemble):
    """The first participant has the weight `share`."""

    members: ClassVar[tuple[str, ...]] = ("clients",)
    name: Literal["favourite"]
    share: Rate = 0.5


def shares(settings, members):
    count = sum(len(part.samples) for part in members)
    rest = (1 - settings.share) / max(count - 1, 1)
    first = settings.share if count > 1 else 1.0
    return torch.tensor([first, *[rest] * (count - 1)], dtype=torch.float64)
