"""Votes of clients with an unknown class (FedOV, Diao et al. 2023): p(x)_c ~ sum_i q_i(x)_c, c < C.

q_i = sigma(z_i) over the C classes and, last, the unknown class: a client that does not recognise a
sample assigns little probability to the other classes. The sum is over all clients. In the released
code it is over the m to which the sample is least unknown, and the test accuracy is printed for
every m, which leaves the choice of m open.
"""

import torch

from fedstage.algorithm.one_shot.aggregators import Knowledge
from fedstage.settings.aggregators import LeastUnknown
from fedstage.weights import Weights


def parameters(settings: LeastUnknown, known: Knowledge, generator: torch.Generator) -> Weights:
    """Return no tensors: there is nothing to learn."""
    return {}


def combine(
    settings: LeastUnknown, parameters: Weights, logits: torch.Tensor, pixels: torch.Tensor | None
) -> torch.Tensor:
    """Return log sum_i q_i [n, C] from logits [M, n, C + 1], whose softmax is p(x)."""
    log_probabilities = logits.log_softmax(2)
    return log_probabilities[..., :-1].logsumexp(0)
