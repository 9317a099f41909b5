"""Aggregation: the weighted average of a group's client models (FedSDD, Eq. 2)."""

from collections.abc import Iterable, Mapping, Sequence

import torch

from fedstage.storage.tensors import Weights


def average_weights(models: Sequence[Weights], weights: Sequence[float]) -> Weights:
    """Return sum_n p_n w_n with p_n = weights_n / sum of weights.

    Sums are taken in float64 in the order given. Floating-point buffers (BatchNorm's running
    statistics) are averaged like parameters; integer buffers (its batch counter) take the rounded
    average.

    Parameters
    ----------
    models : sequence of dict
        Tensors of equal names and shapes.
    weights : sequence of float
        One a model, not all zero.
    """
    total = float(sum(weights))
    return {
        name: _average([model[name] for model in models], [weight / total for weight in weights])
        for name in models[0]
    }


def _average(tensors: Sequence[torch.Tensor], shares: Sequence[float]) -> torch.Tensor:
    mean = torch.zeros(tensors[0].shape, dtype=torch.float64)
    for tensor, share in zip(tensors, shares, strict=True):
        mean += share * tensor.double()
    kind = tensors[0].dtype
    return (mean if kind.is_floating_point else mean.round()).to(kind)


def mean_change(
    start: Weights, models: Sequence[Weights], shares: Sequence[float], parameters: Iterable[str]
) -> Weights:
    """Return sum_n s_n (w_n - w_start) over the parameters, in float64.

    Parameters
    ----------
    shares : sequence of float
        One a model; they need not sum to 1.
    parameters : iterable of str
        The names of the tensors that are no buffers.
    """
    changes = {}
    for name in parameters:
        begun = start[name].double()
        changes[name] = torch.zeros_like(begun)
        for model, share in zip(models, shares, strict=True):
            changes[name] += share * (model[name].double() - begun)
    return changes


def move_towards(
    start: Weights, average: Weights, rate: float, parameters: Iterable[str]
) -> Weights:
    """Return the average with the parameters at w_start + eta_g (average - w_start).

    Computed in float64. Buffers stay as averaged: a running variance that is moved beyond the
    average may become negative. eta_g = 1 gives the average itself, bit for bit.

    Parameters
    ----------
    rate : float
        eta_g, SCAFFOLD's global learning rate (Karimireddy et al. 2020, Algorithm 1).
    parameters : iterable of str
        The names of the tensors that are no buffers.
    """
    if rate == 1:
        return average
    begun = {name: start[name].double() for name in parameters}
    moved = {name: value + rate * (average[name] - value) for name, value in begun.items()}
    return average | {name: value.to(average[name].dtype) for name, value in moved.items()}


def payload_bytes(*groups: Mapping[str, torch.Tensor]) -> int:
    """Return the bytes of all tensors: what travels, file headers excluded."""
    return sum(
        tensor.numel() * tensor.element_size() for group in groups for tensor in group.values()
    )
