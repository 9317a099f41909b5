"""The coordinate-wise median and trimmed mean (Yin et al. 2018, Definitions 1 and 2).

Of an even number of values, the median is the mean of the two in the middle. The trimmed mean
leaves out the b = `trimmed` largest and the b smallest of n values; the paper's beta is b / n.
Running statistics are treated like parameters. Every participant counts once, regardless of
`aggregation.weights`.
"""

from collections.abc import Sequence

import torch

from fedstage.settings.aggregation import Median, TrimmedMean
from fedstage.weights import Weights


def combine(
    settings: Median | TrimmedMean,
    models: Sequence[Weights],
    shares: Sequence[float],
    start: Weights,
) -> Weights:
    """Return, for each number, the mean of the values in the middle: the one or two, or n - 2 b.

    Computed in float64; integers (the batch counter of batch normalisation) are rounded.
    """
    half = (len(models) - 1) // 2
    dropped = half if isinstance(settings, Median) else settings.trimmed
    combined = {}
    for name, first in models[0].items():
        values = torch.stack([model[name].double() for model in models]).sort(dim=0).values
        mean = values[dropped : len(models) - dropped].mean(dim=0)
        combined[name] = (mean if first.is_floating_point() else mean.round()).to(first.dtype)
    return combined
