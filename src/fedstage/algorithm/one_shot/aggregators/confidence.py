"""The weighted consensus of Fed-ET (Cho et al. 2022, Eqs. 2 and 3).

    s(x) = sum_k alpha_k(x) sigma(z_k(x)),     alpha_k(x) = v_k(x) / sum_l v_l(x)

v_k is the variance of the C probabilities of client k: high where it is confident. Where all
probabilities of all clients are equal, 0/0 stands for equal weights.
"""

import torch

from fedstage.algorithm.one_shot.aggregators import Knowledge
from fedstage.settings.aggregators import Confidence
from fedstage.weights import Weights


def parameters(settings: Confidence, known: Knowledge, generator: torch.Generator) -> Weights:
    """Return no tensors: weights follow from the logits."""
    return {}


def combine(
    settings: Confidence, parameters: Weights, logits: torch.Tensor, pixels: torch.Tensor | None
) -> torch.Tensor:
    """Return log s(x), whose softmax is s(x)."""
    return (logits.log_softmax(2) + shares(logits).log()[:, :, None]).logsumexp(0)


def shares(logits: torch.Tensor) -> torch.Tensor:
    """Return alpha [M, n] of logits [M, n, C]."""
    variances = logits.softmax(2).var(2, correction=0)
    total = variances.sum(0)
    equal = torch.full_like(variances, 1 / len(logits))
    return torch.where(total > 0, variances / total, equal)
