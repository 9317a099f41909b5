"""How far participants' models are from their group's."""

from math import sqrt

import torch

from fedstage.weights import Weights


def relative_distance(weights: Weights, parameters: Weights) -> float | None:
    """Return ||w - W|| / ||W|| in percent, the relative distance of a teacher from its student.

    Section 4.3 of "Edge Bias in Federated Learning and its Solution by Buffered Knowledge
    Distillation".

    Parameters
    ----------
    weights : dict
        A trained model with its buffers, which do not count; empty where training diverged.
    parameters : dict
        W, the parameters of the group's model before the aggregation.

    Returns
    -------
    float or None
        None without a trained model, or where all of W is 0.
    """
    norm = _norm(parameters)
    if not weights or not norm:
        return None
    change = {name: weights[name] - value for name, value in parameters.items()}
    return 100 * _norm(change) / norm


def _norm(tensors: Weights) -> float:
    """Return the Euclidean norm of all values together."""
    norms = (torch.linalg.vector_norm(one, dtype=torch.float64) for one in tensors.values())
    return sqrt(sum(float(norm) ** 2 for norm in norms))
