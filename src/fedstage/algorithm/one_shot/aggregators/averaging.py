"""Averaging: f(z) = (1/M) sum_i z_i. FedENS, and the first row of FENS's Table 9."""

import torch

from fedstage.algorithm.one_shot.aggregators import Knowledge
from fedstage.settings.aggregators import Averaging
from fedstage.weights import Weights


def parameters(settings: Averaging, known: Knowledge, generator: torch.Generator) -> Weights:
    """Return no tensors: there is nothing to learn."""
    return {}


def combine(
    settings: Averaging, parameters: Weights, logits: torch.Tensor, pixels: torch.Tensor | None
) -> torch.Tensor:
    """Return the mean [n, C] over the members."""
    return logits.mean(0)
