"""Aggregation: the weighted average of a group's client models (FedSDD, Eq. 2).

All arithmetic is in float64, one part of a tensor at a time, without memory for a second model. The
results are the same, number by number, as on whole tensors.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import sqrt

import torch

from fedstage.algorithm.exchange.updates import Update
from fedstage.settings.aggregation import Aggregation
from fedstage.weights import Deferred, Entry, Tensors, Weights, shapes_of

#: How many numbers are processed at a time, so that they stay in the processor's cache.
PART = 2**16


def add_scaled(
    total: torch.Tensor, share: float, value: torch.Tensor, before: torch.Tensor | None = None
) -> None:
    """Add share * (value - before) to a float64 sum in place, one part at a time."""
    sums, values = total.view(-1), value.reshape(-1)
    starts = None if before is None else before.reshape(-1)
    for first in range(0, len(sums), PART):
        part = slice(first, first + PART)
        change = values[part].double()
        if starts is not None:
            change = change - starts[part].double()
        sums[part] += share * change


def by_parts(
    step: Callable[..., tuple[torch.Tensor, ...]],
    results: Sequence[torch.Tensor],
    *tensors: torch.Tensor,
) -> None:
    """Fill `results` with `step` of tensors of one shape, computed elementwise in float64."""
    flat = [tensor.reshape(-1) for tensor in tensors]
    into = [result.view(-1) for result in results]
    for first in range(0, len(flat[0]), PART):
        part = slice(first, first + PART)
        made = step(*(values[part].double() for values in flat))
        for whole, result in zip(into, made, strict=True):
            whole[part] = result


def room_for(tensors: Tensors) -> Weights:
    """Return uninitialised tensors of these shapes and types, to be written into.

    Allocating results before temporary tensors avoids holes in memory between the results.
    """
    room = {}
    for name, like in shapes_of(tensors).items():
        device = "cpu" if like.is_meta else like.device  # tensors not read yet will be on the CPU
        room[name] = torch.empty(like.shape, dtype=like.dtype, device=device)
    return room


# --- averages -------------------------------------------------------------------------------------


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


# --- distances of participants' models from their group's -----------------------------------------


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
