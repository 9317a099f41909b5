"""Closed-form heads from moments of features (GH-OFL, Turazza et al., ICLR 2026).

From the features f(x) of its samples, by an encoder that all clients share, client k sends

    n_{k,c} = number of class c,   s_{k,c} = sum over class c of f,   S_k = sum of f f^T

Their sums over clients do not depend on how samples are divided. With N samples

    pi_c = n_c / N,   mu_c = s_c / n_c,   Sigma = 1/N ( S - sum_c n_c mu_c mu_c^T )
    Sigma <- (1 - l) Sigma + l tr(Sigma) / d I,   for naive Bayes, only its diagonal
    logits_c = mu_c^T Sigma^-1 f - 1/2 mu_c^T Sigma^-1 mu_c + log pi_c

which is a linear layer. A class without samples is never predicted. The paper's quadratic
discriminants, which are not linear layers and need S by class, and its heads trained on samples
drawn from these Gaussians are not implemented.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from fedstage.settings.transfers import ClosedForm

#: The logit of a class without samples.
NEVER = -10_000.0


@dataclass(frozen=True)
class Moments:
    """`counts` [C], `sums` [C, d] and `products` [d, d] of features, float64."""

    counts: Tensor
    sums: Tensor
    products: Tensor


def moments_of(features: Tensor, labels: Tensor, classes: int) -> Moments:
    """Return the moments of features [n, d] with labels [n]."""
    exact = features.double()
    counts = torch.bincount(labels, minlength=classes).double()
    sums = exact.new_zeros(classes, exact.shape[1]).index_add_(0, labels, exact)
    return Moments(counts, sums, exact.T @ exact)


def total(parts: Sequence[Moments]) -> Moments:
    """Return the moments of all clients' samples."""
    counts = torch.stack([part.counts for part in parts]).double().sum(0)
    sums = torch.stack([part.sums for part in parts]).double().sum(0)
    products = torch.stack([part.products for part in parts]).double().sum(0)
    return Moments(counts, sums, products)


def head(settings: ClosedForm, moments: Moments) -> tuple[Tensor, Tensor]:
    """Return the weights [C, d] and biases [C] of the linear layer, float32.

    The weights are NaN if the covariance has no inverse.
    """
    held = moments.counts > 0
    counts, sums = moments.counts[held], moments.sums[held]
    means = sums / counts[:, None]
    covariance = (moments.products - means.T @ sums) / counts.sum()
    own = settings.shrinkage
    width = len(covariance)
    even = torch.eye(width, dtype=torch.float64) * covariance.trace() / width
    covariance = (1 - own) * covariance + own * even
    if settings.covariance == "diagonal":
        covariance = covariance.diagonal().diag()
    if not _has_inverse(covariance):
        return torch.full_like(moments.sums, torch.nan).float(), moments.counts.float()
    directions = torch.linalg.solve(covariance, means.T).T
    weights = torch.zeros_like(moments.sums)
    biases = torch.full_like(moments.counts, NEVER)
    weights[held] = directions
    biases[held] = (counts / counts.sum()).log() - (means * directions).sum(1) / 2
    return weights.float(), biases.float()


def _has_inverse(covariance: Tensor) -> bool:
    """Whether a covariance has an inverse, up to the precision of moments, sent in float32."""
    values = torch.linalg.eigvalsh(covariance)
    least = torch.finfo(torch.float32).eps * len(values) * values[-1]
    return bool(values[0] > least)
