"""The loss of clients that learn prototypes (FAFI, Zeng et al., ICML 2025).

With two views of each image of a batch, their features f, g = f / |f|, and prototypes p_c:

    L = CE( <g, p>, y ) + near CE( <g, p>, y ) + apart mean_c CE( <p_c, p>, c )
      + alike mean_i - 1/|P(i)| sum_{j in P(i)} log( e_ij / sum_{k != i} e_ik )

with e_ij = exp( <g_i, g_j> / tau ). P(i) is the set of the other views of the same class (Khosla et
al. 2020); the mean is over all views. The first two terms are the same: the released code computes
the second with a temperature of 1, and the third as well. Prototypes can have any length. Both
views form one batch.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize

from fedstage.models.heads import prototypes_of
from fedstage.settings.numerics import Numerics
from fedstage.settings.one_shot_clients import Prototypes
from fedstage.training.images import view
from fedstage.training.passes import ModelLoss, forward


def objective(
    settings: Prototypes, info: Mapping[str, Any], numerics: Numerics, generator: torch.Generator
) -> ModelLoss:
    """Return what a client minimises; `generator`, on the CPU, draws the views."""

    def of_model(model: nn.Module, inputs: Tensor, labels: Tensor) -> Tensor:
        mean, std = (inputs.new_tensor(info[key]).view(1, -1, 1, 1) for key in ("mean", "std"))
        pixels = inputs * std + mean
        seen = torch.cat([view(pixels, generator), view(pixels, generator)])
        outputs = forward(model, (seen - mean) / std, numerics)
        prototypes = prototypes_of(model)
        classes = len(prototypes)
        logits, features = outputs[:, :classes], normalize(outputs[:, classes:])
        both = torch.cat([labels, labels])
        value = (1 + settings.near) * cross_entropy(logits, both)
        value = value + settings.apart * between(prototypes)
        return value + settings.alike * contrast(features, both, settings.temperature)

    return of_model


def between(prototypes: Tensor) -> Tensor:
    """Return the mean cross entropy of the products of all pairs of prototypes [C, d]."""
    numbers = torch.arange(len(prototypes), device=prototypes.device)
    return cross_entropy(prototypes @ prototypes.T, numbers)


def contrast(features: Tensor, labels: Tensor, temperature: float) -> Tensor:
    """Return the supervised contrastive loss of features [n, d] of length 1; no label is unique."""
    similar = features @ features.T / temperature
    own = torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    log_shares = similar - similar.masked_fill(own, -torch.inf).logsumexp(1, keepdim=True)
    same = (labels[:, None] == labels) & ~own
    return -(log_shares * same).sum(1).div(same.sum(1)).mean()
