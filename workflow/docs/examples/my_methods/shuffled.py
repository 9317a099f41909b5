"""Images with permuted pixels, by one permutation per batch."""

from typing import Literal

import torch

from fedstage.settings.one_shot_clients import OutlierSource


class Shuffled(OutlierSource):
    """The client's images with permuted pixels."""

    name: Literal["shuffled"]


def make(settings, samples, generator):
    pixels = samples.flatten(2)
    order = torch.randperm(pixels.shape[2], generator=generator).to(samples.device)
    return pixels[:, :, order].view_as(samples)
