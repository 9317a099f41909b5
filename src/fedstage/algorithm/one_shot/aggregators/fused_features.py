"""Fused features of all clients, compared with mean prototypes (FAFI, Zeng et al., ICML 2025).

    f(x) = sum_i w_i f_i(x),     p_c = 1/M sum_i p_{i,c},     logits_c = < f(x) / |f(x)|, p_c >

w_i is client i's share of the samples, as released. The published weights depend on how far a
feature is from a feature of noise. The released code has them only in an unused class, as a mean
over clients: a factor that all features share and that normalisation cancels.
"""

import torch
from torch.nn.functional import normalize

from fedstage.algorithm.one_shot.aggregators import Knowledge
from fedstage.settings.aggregators import FusedFeatures
from fedstage.weights import Weights


def parameters(settings: FusedFeatures, known: Knowledge, generator: torch.Generator) -> Weights:
    """Return p [C, d] and w [M]."""
    assert known.prototypes is not None, "checked by OneShotRecipe: clients have learnt some"
    samples = known.label_counts.sum(1).double()
    shares = (samples / samples.sum()).float()
    return {"prototypes": known.prototypes.mean(0), "weights": shares}


def combine(
    settings: FusedFeatures,
    parameters: Weights,
    logits: torch.Tensor,
    pixels: torch.Tensor | None,
) -> torch.Tensor:
    """Return logits [n, C] of outputs [M, n, C + d], of which the last d are features."""
    prototypes = parameters["prototypes"]
    features = logits[..., len(prototypes) :]
    fused = torch.einsum("m,mnd->nd", parameters["weights"], features)
    return normalize(fused) @ prototypes.T
