"""Per-class weights: f(z)_c = sum_i lambda_{i,c} z_{i,c} with free lambda (FENS, Table 8).

The paper does not specify the initial lambda: here it is 1/M, the plain average.
"""

import torch

from fedstage.algorithm.one_shot.aggregators import Knowledge
from fedstage.settings.aggregators import PerClass
from fedstage.weights import Weights


def parameters(settings: PerClass, known: Knowledge, generator: torch.Generator) -> Weights:
    """Return lambda [M, C]."""
    return {"weights": torch.full((known.members, known.classes), 1 / known.members)}


def combine(
    settings: object, parameters: Weights, logits: torch.Tensor, pixels: torch.Tensor | None
) -> torch.Tensor:
    """Return sum_i lambda_i * z_i, class by class."""
    return torch.einsum("mc,mnc->nc", parameters["weights"], logits)
