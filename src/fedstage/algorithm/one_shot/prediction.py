"""Predictions of an aggregator from the cached logits of its members."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from fedstage.algorithm.one_shot.aggregators import combination
from fedstage.algorithm.one_shot.client_models import of_rule
from fedstage.data.bags import Samples
from fedstage.protocol.one_shot import members
from fedstage.settings.aggregators import Aggregator
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.training.images import normalise
from fedstage.weights import Weights

BATCH = 1000  # samples at a time, since the images that a rule sees are large


def of_chosen(
    recipe: OneShotRecipe, chosen: Sequence[int], logits: torch.Tensor, info: Mapping[str, Any]
) -> torch.Tensor:
    """Return the outputs of the chosen clients that the aggregator uses.

    Logits [M, n, outputs] of all clients become [m, n, C], or as many outputs as the rule uses.
    """
    everyone, seen = members(recipe), of_rule(recipe.aggregator, logits, info)
    if list(chosen) == everyone:
        return seen
    return seen[torch.tensor([everyone.index(client) for client in chosen])]


@torch.no_grad()
def predict(
    aggregator: Aggregator,
    parameters: Weights,
    logits: torch.Tensor,
    images: Samples,
    info: Mapping[str, Any],
) -> torch.Tensor:
    """Return logits [n, C] from the members' outputs that the rule uses, on their device.

    `logits` have the shape [M, n, ...]. A rule that uses images gets n of them, uint8 [n, channels,
    height, width].
    """
    combine = combination(aggregator)
    placed = {name: value.to(logits.device) for name, value in parameters.items()}
    parts = []
    for start in range(0, logits.shape[1], BATCH):
        at, pixels = slice(start, start + BATCH), None
        if aggregator.sees_images:
            assert isinstance(images, torch.Tensor), "such a rule is refused for other samples"
            pixels = normalise(images[at], info)
        parts.append(combine(placed, logits[:, at], pixels))
    return torch.cat(parts)
