"""What an aggregator says about images, from the cached logits of its members."""

from collections.abc import Mapping
from typing import Any

import torch

from fedstage.algorithm.one_shot.aggregators import combination, sees_images
from fedstage.data.bags import Samples
from fedstage.settings.aggregators import Aggregator
from fedstage.storage.tensors import Weights
from fedstage.training.images import normalise

BATCH = 1000  # samples at a time: the images that a rule sees are large


@torch.no_grad()
def predict(
    aggregator: Aggregator,
    parameters: Weights,
    logits: torch.Tensor,
    images: Samples,
    about: Mapping[str, Any],
) -> torch.Tensor:
    """Return logits [n, C] from the members' [M, n, C], on their device.

    Parameters
    ----------
    images : Samples
        n of them, such as uint8 [n, channels, height, width], for a rule that sees them.
    about : Mapping
        Mean and deviation that images are normalised with.
    """
    combine = combination(aggregator)
    placed = {name: value.to(logits.device) for name, value in parameters.items()}
    parts = []
    for start in range(0, logits.shape[1], BATCH):
        at = slice(start, start + BATCH)
        pixels = _pixels(images, at, about) if sees_images(aggregator) else None
        parts.append(combine(placed, logits[:, at], pixels))
    return torch.cat(parts)


def _pixels(images: Samples, at: slice, about: Mapping[str, Any]) -> torch.Tensor:
    assert isinstance(images, torch.Tensor), "a rule that sees images is refused for other samples"
    return normalise(images[at], about)
