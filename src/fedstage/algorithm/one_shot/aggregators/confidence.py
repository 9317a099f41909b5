"""The weighted consensus of Fed-ET (Cho et al. 2022, Eqs. 2 and 3).

s(x) = sum_k alpha_k(x) sigma(z_k(x)),     alpha_k(x) by confidence
"""

import torch

from fedstage.algorithm.ensemble_trainers import confidence_shares
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
    return (logits.log_softmax(2) + confidence_shares(logits).log()[:, :, None]).logsumexp(0)
