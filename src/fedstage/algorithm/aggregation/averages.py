"""Aggregation: the weighted average of a group's client models (FedSDD, Eq. 2)."""

from collections.abc import Iterable, Sequence

import torch

from fedstage.algorithm.exchange.updates import Update
from fedstage.settings.aggregation import Aggregation
from fedstage.weights import Weights


def client_weights(settings: Aggregation, updates: Sequence[Update]) -> list[float]:
    """Return the clients' weights in the average: 1 each, or their training samples."""
    uniform = settings.weights == "uniform"
    return [1.0 if uniform else float(update.metadata["samples"]) for update in updates]


def average_weights(models: Sequence[Weights], weights: Sequence[float]) -> Weights:
    """Return sum_n p_n w_n with p_n = weights_n / sum of weights.

    Sums are taken in float64 in the order given. Floating-point buffers (BatchNorm's running
    statistics) are averaged like parameters; integer buffers (its batch counter) take the rounded
    average.
    """
    total = float(sum(weights))
    average = {}
    for name, first in models[0].items():
        mean = torch.zeros(first.shape, dtype=torch.float64)
        for model, weight in zip(models, weights, strict=True):
            mean += weight / total * model[name].double()
        average[name] = (mean if first.is_floating_point() else mean.round()).to(first.dtype)
    return average


def mean_change(
    start: Weights, models: Sequence[Weights], shares: Sequence[float], parameters: Iterable[str]
) -> Weights:
    """Return sum_n s_n (w_n - w_start) over the parameters, by name, in float64.

    The shares s_n, one a model, need not sum to 1.
    """
    changes = {}
    for name in parameters:
        before = start[name].double()
        changes[name] = torch.zeros_like(before)
        for model, share in zip(models, shares, strict=True):
            changes[name] += share * (model[name].double() - before)
    return changes


def move_towards(
    start: Weights, average: Weights, rate: float, parameters: Iterable[str]
) -> Weights:
    """Return the average with the parameters at w_start + eta_g (average - w_start).

    `rate` is eta_g, SCAFFOLD's global learning rate (Karimireddy et al. 2020, Algorithm 1); 1 gives
    the average itself, bit for bit. Computed in float64. Buffers stay as averaged: a running
    variance that is moved beyond the average may become negative.
    """
    if rate == 1:
        return average
    before = {name: start[name].double() for name in parameters}
    moved = {name: value + rate * (average[name] - value) for name, value in before.items()}
    return average | {name: value.to(average[name].dtype) for name, value in moved.items()}
