"""Aggregation: the weighted average of a group's client models (FedSDD, Eq. 2)."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import torch

from fedstage.algorithm.aggregation.parts import add_scaled, by_parts, room_for
from fedstage.algorithm.exchange.updates import Update
from fedstage.settings.aggregation import Aggregation
from fedstage.weights import Deferred, Entry, Tensors, Weights, shapes_of


def client_weights(settings: Aggregation, updates: Sequence[Update]) -> list[float]:
    """Return the clients' weights in the average: 1 each, or their training samples."""
    uniform = settings.weights == "uniform"
    return [1.0 if uniform else float(update.metadata["samples"]) for update in updates]


def average_weights(
    models: Sequence[Tensors], weights: Sequence[float], names: Iterable[str] | None = None
) -> Weights:
    """Return sum_n p_n w_n with p_n = weights_n / sum of weights.

    Sums are taken in float64 in the order given. Floating-point buffers (BatchNorm's running
    statistics) are averaged like parameters; integer buffers (its batch counter) take the rounded
    average. By default all tensors are averaged, otherwise the ones in `names`; only one tensor per
    model is in memory at a time.
    """
    total, kinds = float(sum(weights)), shapes_of(models[0])
    average = room_for(kinds if names is None else {name: kinds[name] for name in names})
    for name, result in average.items():
        mean = torch.zeros(result.shape, dtype=torch.float64)
        for model, weight in zip(models, weights, strict=True):
            add_scaled(mean, weight / total, model[name])
        result.copy_(mean if result.is_floating_point() else mean.round())
    return average


def mean_change(
    start: Tensors, models: Sequence[Tensors], shares: Sequence[float], parameters: Iterable[str]
) -> Tensors:
    """Return sum_n s_n (w_n - w_start) over the parameters, by name, in float64.

    The shares s_n, one per model, need not sum to 1. Each sum is computed when it is needed.
    """

    def change(name: str) -> torch.Tensor:
        before = start[name]
        total = torch.zeros(before.shape, dtype=torch.float64)
        for model, share in zip(models, shares, strict=True):
            add_scaled(total, share, model[name], before)
        return total

    return changes_by(change, start, parameters)


def changes_by(
    change: Callable[[str], torch.Tensor], like: Tensors, parameters: Iterable[str]
) -> Tensors:
    """Return the change of each parameter in float64, computed from its name when it is needed."""
    shapes, entries = shapes_of(like), {}
    for name in parameters:
        shape = torch.empty(shapes[name].shape, dtype=torch.float64, device="meta")
        entries[name] = Entry(shape, partial(change, name))
    return Deferred(entries)


def move_towards(
    start: Tensors, average: Weights, rate: float, parameters: Iterable[str]
) -> Weights:
    """Return the average with the parameters at w_start + eta_g (average - w_start).

    `rate` is eta_g, SCAFFOLD's global learning rate (Karimireddy et al. 2020, Algorithm 1); 1 gives
    the average itself, bit for bit. Computed in float64. Buffers stay as averaged: a running
    variance that is moved beyond the average may become negative.
    """
    if rate == 1:
        return average
    moved = dict(average)
    for name in parameters:
        mean = moved[name]
        moved[name] = torch.empty_like(mean)
        by_parts(partial(_towards, rate), [moved[name]], start[name], mean)
    return moved


def _towards(rate: float, before: torch.Tensor, mean: torch.Tensor) -> tuple[torch.Tensor]:
    return (before + rate * (mean - before),)
