"""The mean of each number's middle values, for the median and the trimmed mean."""

from collections.abc import Sequence

import torch

from fedstage.weights import Weights


def middle_mean(models: Sequence[Weights], dropped: int) -> Weights:
    """Return each number's mean over the models, without the `dropped` smallest and largest.

    Computed in float64; integers (the batch counter of batch normalisation) are rounded.
    """
    combined = {}
    for name, first in models[0].items():
        values = torch.stack([model[name].double() for model in models]).sort(dim=0).values
        mean = values[dropped : len(models) - dropped].mean(dim=0)
        combined[name] = (mean if first.is_floating_point() else mean.round()).to(first.dtype)
    return combined
