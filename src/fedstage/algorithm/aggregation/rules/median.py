"""The coordinate-wise median (Yin et al. 2018, Definition 1).

For an even number of values it is the mean of the two in the middle. Running statistics are treated
like parameters. Every participant counts once, regardless of `aggregation.weights`.
"""

from collections.abc import Sequence

from fedstage.algorithm.aggregation.rules.elementwise import middle_mean
from fedstage.settings.model_rules import Median
from fedstage.weights import Weights


def combine(
    settings: Median, models: Sequence[Weights], shares: Sequence[float], start: Weights
) -> Weights:
    """Return the median of each number."""
    return middle_mean(models, dropped=(len(models) - 1) // 2)
