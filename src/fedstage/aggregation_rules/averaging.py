"""Averaging: f(z) = (1/M) sum_i z_i. FedENS, and the first row of FENS's Table 9."""

import torch

from fedstage.aggregation_rules import Knowledge
from fedstage.artefacts import Weights
from fedstage.config import Averaging


def parameters(settings: Averaging, known: Knowledge, generator: torch.Generator) -> Weights:
    """Return nothing: nothing is learnt."""
    return {}


def combine(
    settings: Averaging, parameters: Weights, logits: torch.Tensor, pixels: torch.Tensor | None
) -> torch.Tensor:
    """Return the mean [n, C] over the members."""
    return logits.mean(0)
