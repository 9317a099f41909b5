"""Krum and Multi-Krum (Blanchard et al. 2017, section 4).

With n models, f = `faulty` of which may be arbitrary, the score of model i is

    s(i) = sum of ||w_i - w_j||^2 over the n - f - 2 models j that are nearest to it, j != i

over parameters. Krum takes the model with the lowest score, Multi-Krum the plain mean of the m =
`selected` models with the lowest scores; of equal scores, the first participant's comes first. The
paper is about gradients at a common point, which are as far apart as the models. It proves
resilience for n > 2 f + 2; m may be n - f - 2 at most, as in El Mhamdi et al. 2018.
"""

from collections.abc import Sequence

import torch

from fedstage.algorithm.aggregation.averages import average_weights
from fedstage.settings.aggregation import Krum
from fedstage.weights import Weights


def combine(
    settings: Krum, models: Sequence[Weights], shares: Sequence[float], start: Weights
) -> Weights:
    """Return the model with the lowest score, or the mean of the `selected` lowest."""
    order = scores(models, start, settings.faulty).sort(stable=True).indices.tolist()
    best = sorted(order[: settings.selected])
    return average_weights([models[number] for number in best], [1.0] * len(best))


def scores(models: Sequence[Weights], names: Weights, faulty: int) -> torch.Tensor:
    """Return s(i) of each model, float64 [n], over the tensors with these names."""
    vectors = [torch.cat([model[name].double().flatten() for name in names]) for model in models]
    distances = torch.stack(
        [torch.stack([(own - other).square().sum() for other in vectors]) for own in vectors]
    )
    nearest = distances.sort(dim=1).values  # the first is the distance to itself, 0
    return nearest[:, 1 : len(models) - faulty - 1].sum(dim=1)
