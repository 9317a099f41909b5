"""FedBE's ensemble: all client models, the averaged one, and models drawn from their distribution.

All weigh the same. How models are drawn stands in `fedstage.algorithm.ensemble_trainers.sampling`.
"""

from fedstage.algorithm.ensemble_trainers.aggregated import shares

__all__ = ["shares"]
