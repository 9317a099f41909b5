"""What the median and the trimmed mean share: a mean of each number's middle values."""

from collections.abc import Sequence

import torch

from fedstage.weights import Weights


def middle_mean(models: Sequence[Weights], dropped: int) -> Weights:
    """Return of each number the mean without the `dropped` smallest and largest of the models.

    In float64; integers (the batch counter of batch normalisation) are rounded.
    """
    combined = {}
    for name, first in models[0].items():
        values = torch.stack([model[name].double() for model in models]).sort(dim=0).values
        mean = values[dropped : len(models) - dropped].mean(dim=0)
        combined[name] = (mean if first.is_floating_point() else mean.round()).to(first.dtype)
    return combined
