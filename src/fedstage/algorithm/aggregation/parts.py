"""Arithmetic in float64, one part of a tensor at a time, without memory for a second model.

The results are the same, number by number, as on whole tensors.
"""

from collections.abc import Callable, Sequence

import torch

from fedstage.weights import Tensors, Weights, shapes_of

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
