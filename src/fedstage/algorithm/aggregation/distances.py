"""How far participants' models are from their group's."""

from collections.abc import Sequence
from math import sqrt

import torch

from fedstage.algorithm.aggregation.parts import PART
from fedstage.weights import Tensors


def relative_distances(models: Sequence[Tensors], parameters: Tensors) -> list[float | None]:
    """Return ||w - W|| / ||W|| of each model in percent, the relative distance of a teacher.

    Section 4.3 of "Edge Bias in Federated Learning and its Solution by Buffered Knowledge
    Distillation".

    Parameters
    ----------
    models : sequence of mappings
        Trained models with their buffers, which do not count; empty where training diverged.
    parameters : mapping
        W, the parameters of the group's model before the aggregation.

    Returns
    -------
    list of float or None
        None without a trained model, or where all of W is 0.
    """
    before: list[float] = []
    changes: list[list[float]] = [[] for _ in models]
    for name, value in parameters.items():
        before.append(_norm(value))
        for model, norms in zip(models, changes, strict=True):
            if model:
                norms.append(_norm(model[name], value))
    length = _together(before)
    return [100 * _together(norms) / length if norms and length else None for norms in changes]


def _norm(tensor: torch.Tensor, before: torch.Tensor | None = None) -> float:
    """Return the Euclidean norm of a tensor, or of its difference from `before`."""
    squares = torch.zeros((), dtype=torch.float64)
    for first in range(0, tensor.numel(), PART):
        values = tensor.reshape(-1)[first : first + PART].double()
        if before is not None:
            values = values - before.reshape(-1)[first : first + PART]
        squares += values.square().sum()
    return float(squares.sqrt())


def _together(norms: Sequence[float]) -> float:
    """Return the norm of all tensors together, from the norm of each."""
    return sqrt(sum(norm**2 for norm in norms))
