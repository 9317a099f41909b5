"""Weights by confidence (Fed-ET, Cho et al. 2022, Eq. 3).

    alpha_k(x) = v_k(x) / sum_l v_l(x),     v_k(x) = Var_c s_c(w_k, x)

v_k is the variance of the C probabilities of model k: high where it is confident. Where all
probabilities of all models are equal, 0/0 stands for equal weights.
"""

import torch


def confidence_shares(logits: torch.Tensor) -> torch.Tensor:
    """Return alpha [M, n] of logits [M, n, C]."""
    variances = logits.softmax(2).var(2, correction=0)
    total = variances.sum(0)
    equal = torch.full_like(variances, 1 / len(logits))
    return torch.where(total > 0, variances / total, equal)
