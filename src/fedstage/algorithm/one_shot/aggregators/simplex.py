"""A mixture of probabilities: p(x) = sum_k a_k sigma(z_k), with a in the simplex (FedBoost).

Hamer, Mohri and Suresh 2020: predictors are fixed, and only a is learnt, by mirror descent
(`aggregator_training.mirror_descent`). It starts from 1/M; the paper does not specify the start.
"""

import torch

from fedstage.algorithm.one_shot.aggregators import Knowledge
from fedstage.settings.aggregators import Simplex
from fedstage.weights import Weights


def parameters(settings: Simplex, known: Knowledge, generator: torch.Generator) -> Weights:
    """Return a [M], all equal."""
    return {"weights": torch.full((known.members,), 1 / known.members)}


def combine(
    settings: Simplex, parameters: Weights, logits: torch.Tensor, pixels: torch.Tensor | None
) -> torch.Tensor:
    """Return log p(x) [n, C], whose softmax is p(x)."""
    return (logits.log_softmax(2) + parameters["weights"].log()[:, None, None]).logsumexp(0)
