"""FedYogi (Reddi et al. 2021, Algorithm 2): v <- v - (1 - beta2) Delta^2 sign(v - Delta^2).

v changes by at most (1 - beta2) Delta^2, however large v is: it forgets a large Delta slowly.
"""

from functools import partial

from fedstage.algorithm.aggregation.server_optimizers.adaptive import adaptive_step

step = partial(
    adaptive_step, lambda v, squared, beta2: v - (1 - beta2) * squared * (v - squared).sign()
)
