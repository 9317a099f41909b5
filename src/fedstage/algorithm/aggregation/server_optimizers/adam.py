"""FedAdam (Reddi et al. 2021, Algorithm 2): v <- beta2 v + (1 - beta2) Delta^2."""

from functools import partial

from fedstage.algorithm.aggregation.server_optimizers.adaptive import adaptive_step

step = partial(adaptive_step, lambda v, squared, beta2: beta2 * v + (1 - beta2) * squared)
