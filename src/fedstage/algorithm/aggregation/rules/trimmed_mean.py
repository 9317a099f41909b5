"""The coordinate-wise trimmed mean (Yin et al. 2018, Definition 2).

For each number, the b = `trimmed` largest and the b smallest of n values are left out; the paper's
beta is b / n. Every participant counts once, regardless of `aggregation.weights`.
"""

from collections.abc import Sequence

from fedstage.algorithm.aggregation.rules.elementwise import middle_mean
from fedstage.settings.model_rules import TrimmedMean
from fedstage.weights import Weights


def combine(
    settings: TrimmedMean, models: Sequence[Weights], shares: Sequence[float], start: Weights
) -> Weights:
    """Return, for each number, the mean of the n - 2 b values in the middle."""
    return middle_mean(models, settings.trimmed)
