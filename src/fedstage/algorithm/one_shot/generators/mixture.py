"""FedPFT (Beitollahi et al. 2024): Gaussian mixtures of a client's features, by class.

The server draws features from the mixtures, on which it trains a head. As released, mixtures are
fitted by expectation maximisation and sent as float16. The released code leaves out classes that
have no more than M samples; here such a class of n samples gets a mixture of max(n - 1, 1).
"""

from collections.abc import Mapping
from typing import Any

import torch
from sklearn.mixture import GaussianMixture

from fedstage.randomness import Key, torch_generator
from fedstage.settings.generators import Mixture
from fedstage.settings.numerics import Numerics
from fedstage.weights import Weights

_FITTING = {"tol": 1e-12, "max_iter": 1000}  # as released


def train(
    settings: Mixture,
    features: torch.Tensor,
    labels: torch.Tensor,
    info: Mapping[str, Any],
    key: tuple[Key, ...],
    numerics: Numerics,
) -> tuple[Weights, float]:
    """Return the mixture of each class that has samples, and the mean of - log p(f)."""
    seed = int(torch.randint(2**31, (), generator=torch_generator(*key)))
    features, labels = features.cpu(), labels.cpu()
    sent, loss = Weights(), 0.0
    for label in labels.unique().tolist():
        own = features[labels == label].flatten(1).double().numpy()
        components = max(1, min(settings.components, len(own) - 1))
        if len(own) == 1:
            own = own.repeat(2, 0)  # scikit-learn fits two samples at least
        fitted = GaussianMixture(
            components, covariance_type=settings.covariance, random_state=seed, **_FITTING
        ).fit(own)
        loss -= float(fitted.score(own)) * float((labels == label).double().mean())
        for name in ("weights", "means", "covariances"):
            value = torch.from_numpy(getattr(fitted, f"{name}_"))
            sent[f"{label}.{name}"] = value.to(torch.float16)
    return sent, loss


def sample(
    settings: Mixture,
    weights: Weights,
    labels: torch.Tensor,
    info: Mapping[str, Any],
    generator: torch.Generator,
    device: torch.device,
) -> torch.Tensor:
    """Return features, float32 [n, *shape], of labels [n]."""
    drawn = torch.empty(len(labels), *info["shape"])
    noise = torch.randn(len(labels), drawn[:1].numel(), generator=generator)
    for label in labels.unique().tolist():
        own = (labels == label).nonzero()[:, 0]
        shares, means, covariances = (
            weights[f"{label}.{name}"].float() for name in ("weights", "means", "covariances")
        )
        chosen = torch.multinomial(shares, len(own), replacement=True, generator=generator)
        spread = noise[own]
        if settings.covariance == "full":
            values, vectors = torch.linalg.eigh(covariances)  # float16 may make some negative
            roots = vectors * values.clamp(min=0).sqrt()[:, None]
            spread = torch.einsum("nij,nj->ni", roots[chosen], spread)
        else:
            spread = spread * covariances.sqrt().view(len(shares), -1)[chosen]
        drawn[own] = (means[chosen] + spread).view(-1, *info["shape"])
    return drawn
