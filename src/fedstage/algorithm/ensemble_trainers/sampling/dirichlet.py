"""FedBE's Dirichlet over models: w = sum_i gamma_i w_i with gamma ~ Dir(a, ..., a)."""

from collections.abc import Sequence

import numpy as np

from fedstage.algorithm.aggregation.averages import average_weights
from fedstage.weights import Tensors, Weights


def sample(
    models: Sequence[Tensors], concentration: float, generator: np.random.Generator
) -> Weights:
    """Draw one model: a convex combination of the clients', running statistics included.

    `concentration` is a: the larger, the nearer to the plain mean.
    """
    gamma = generator.dirichlet([concentration] * len(models))
    return average_weights(models, gamma.tolist())
