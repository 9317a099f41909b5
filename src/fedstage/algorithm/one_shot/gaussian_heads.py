"""Closed-form heads from moments of features: GH-OFL, FedCGS and AFL.

From the features f(x) of its samples, by an encoder that all clients share, client k of K sends

    n_{k,c} = number of class c,   s_{k,c} = sum over class c of f,   S_k = sum of f f^T

Their sums over clients do not depend on how samples are divided. With N samples in all

    pi_c = n_c / N,   mu_c = s_c / n_c
    Sigma = 1/N ( S - sum_c n_c mu_c mu_c^T ),   for naive Bayes, only its diagonal
        or 1/(N - 1) ( S - N m m^T ) with the mean m of all features (FedCGS)
    Sigma <- (1 - l) Sigma + l tr(Sigma) / d I
    logits_c = mu_c^T Sigma^-1 f - 1/2 mu_c^T Sigma^-1 mu_c + log pi_c

or, by ridge regression (AFL), logits_c = s_c^T (S + K gamma I)^-1 f, of which cleaning leaves
s_c^T S^-1 f. These are linear layers. A class without samples is never predicted.

GH-OFL: Turazza et al., ICLR 2026. Its quadratic discriminants, which are not linear layers and need
S by class, and its heads trained on samples drawn from these Gaussians are not implemented. FedCGS:
Guan et al., AAAI 2025. AFL: He et al., CVPR 2025.
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


def head(settings: ClosedForm, moments: Moments, clients: int = 1) -> tuple[Tensor, Tensor]:
    """Return the weights [C, d] and biases [C] of the linear layer, float64.

    The weights are NaN if the covariance, or the matrix of a ridge regression, has no inverse.
    """
    held = moments.counts > 0
    counts, sums = moments.counts[held], moments.sums[held]
    means = sums / counts[:, None]
    precision = torch.finfo(torch.float32).eps  # of the moments, as sent
    if settings.ridge:
        added = 0.0 if settings.ridge.clean else clients * settings.ridge.gamma
        matrix, sides = moments.products + added * torch.eye(sums.shape[1]), sums
    else:
        matrix, sides = _covariance(settings, moments.products, counts, sums), means
        precision *= len(matrix)
    weights = torch.zeros_like(moments.sums)
    biases = torch.full_like(moments.counts, NEVER)
    values = torch.linalg.eigvalsh(matrix)
    if not values[0] > precision * values[-1]:
        return weights + torch.nan, biases
    weights[held] = torch.linalg.solve(matrix, sides.T).T
    biases[held] = 0.0
    if not settings.ridge:
        biases[held] = (counts / counts.sum()).log() - (means * weights[held]).sum(1) / 2
    return weights, biases


def _covariance(settings: ClosedForm, products: Tensor, counts: Tensor, sums: Tensor) -> Tensor:
    number, whole = counts.sum(), sums.sum(0)
    if settings.covariance == "total":
        covariance = (products - whole.outer(whole) / number) / (number - 1)
    else:
        covariance = (products - (sums / counts[:, None]).T @ sums) / number
    own = settings.shrinkage
    width = len(covariance)
    even = torch.eye(width, dtype=torch.float64) * covariance.trace() / width
    covariance = (1 - own) * covariance + own * even
    return covariance.diagonal().diag() if settings.covariance == "diagonal" else covariance
