"""Linear: f(z) = sum_i w_i z_i, one trained scalar per client (FENS, Section 3.6).

The paper does not specify the initial w: here it is 1/M, the plain average. The released code
starts from 1, and adds a scalar to all classes, which does not change the softmax.
"""

import torch

from fedstage.algorithm.one_shot.aggregators import Knowledge
from fedstage.settings.aggregators import Linear
from fedstage.weights import Weights


def parameters(settings: Linear, known: Knowledge, generator: torch.Generator) -> Weights:
    """Return w [M]."""
    return {"weights": torch.full((known.members,), 1 / known.members)}


def combine(
    settings: Linear, parameters: Weights, logits: torch.Tensor, pixels: torch.Tensor | None
) -> torch.Tensor:
    """Return sum_i w_i z_i."""
    return torch.einsum("m,mnc->nc", parameters["weights"], logits)
