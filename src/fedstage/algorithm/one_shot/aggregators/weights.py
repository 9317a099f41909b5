"""Weights of clients, fixed or trained: sums of logits z_k, or of probabilities sigma(z_k).

    averaging    (1/M) sum_k z_k, as FedENS and the first row of FENS's Table 9
    linear       sum_k w_k z_k with trained w (FENS, Section 3.6)
    per_class    sum_k lambda_{k,c} z_{k,c} with trained lambda (FENS, Table 8)
    weighted     the same with lambda_{k,c} = n_k^c / sum_j n_j^c (FedKD, Gong et al. 2022; FENS)
    simplex      sum_k a_k sigma(z_k), a in the simplex (FedBoost, Hamer, Mohri and Suresh 2020)
    confidence   sum_k alpha_k(x) sigma(z_k), alpha by confidence (Fed-ET, Eqs. 2 and 3)

n_k^c is the number of samples of class c on which client k trains. For a class that no client has,
lambda is 0/0, which the papers leave open: here it is 1/M, the mean over clients. Only a is learnt
of FedBoost, by mirror descent (`aggregator_training.mirror_descent`).

No paper specifies the initial weights: here they are 1/M, the plain average. FENS's released code
starts from 1, and adds a scalar to all classes, which does not change the softmax.
"""

import torch

from fedstage.algorithm.ensemble_trainers import confidence_shares
from fedstage.algorithm.one_shot.aggregators import Knowledge
from fedstage.settings.aggregators import (
    Averaging,
    Confidence,
    Linear,
    PerClass,
    Simplex,
    Weighted,
)
from fedstage.weights import Weights

Weighting = Averaging | Confidence | Linear | PerClass | Simplex | Weighted


def parameters(settings: Weighting, known: Knowledge, generator: torch.Generator) -> Weights:
    """Return the weights [M] or [M, C]; no tensors if there is nothing to learn or to count."""
    if isinstance(settings, Averaging | Confidence):
        return {}
    if isinstance(settings, Linear | Simplex):
        return {"weights": torch.full((known.members,), 1 / known.members)}
    if isinstance(settings, PerClass):
        return {"weights": torch.full((known.members, known.classes), 1 / known.members)}
    counts = known.label_counts.double()
    held = counts.sum(0)
    shares = torch.where(held > 0, counts / held.clamp(min=1), 1 / known.members)
    return {"weights": shares.float()}


def combine(
    settings: Weighting, parameters: Weights, logits: torch.Tensor, pixels: torch.Tensor | None
) -> torch.Tensor:
    """Return the sum [n, C] over the members; of probabilities its logarithm."""
    if isinstance(settings, Averaging):
        return logits.mean(0)
    if isinstance(settings, Confidence):
        shares = confidence_shares(logits)
        return (logits.log_softmax(2) + shares.log()[:, :, None]).logsumexp(0)
    weights = parameters["weights"]
    if isinstance(settings, Simplex):
        return (logits.log_softmax(2) + weights.log()[:, None, None]).logsumexp(0)
    return torch.einsum(
        "m,mnc->nc" if isinstance(settings, Linear) else "mc,mnc->nc", weights, logits
    )
