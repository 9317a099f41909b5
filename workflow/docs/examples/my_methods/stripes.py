"""Images of stripes; the direction is the class."""

from typing import ClassVar, Literal

import torch

from fedstage.data.datasets.images import Dataset, Images
from fedstage.settings.base import Count
from fedstage.settings.data_sets import Sized


class Stripes(Sized):
    """Images of stripes, 40 of them without labels."""

    in_folder: ClassVar[bool] = False
    name: Literal["stripes"]
    held_out: Count = 40


def load(settings, folder):
    generator = torch.Generator().manual_seed(settings.split_seed)
    labels = torch.arange(200) % 2
    pixels = torch.randint(0, 50, (200, 1, 4, 4), dtype=torch.uint8, generator=generator)
    pixels[labels == 0, :, ::2] += 200
    pixels[labels == 1, :, :, ::2] += 200

    def part(first, last):
        return Images(pixels[first:last], labels[first:last])

    return Dataset(part(0, 120), part(120, 160), pixels[160:], part(200, 200), ("rows", "columns"))
