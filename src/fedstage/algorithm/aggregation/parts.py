"""Arithmetic in float64, a part of a tensor at a time, so that it costs no second model.

What is computed is the same, number by number.
"""

from collections.abc import Callable, Sequence

import torch

from fedstage.weights import Tensors, Weights, shapes_of

#: Numbers that are computed with at a time: they stay in the processor's cache.
PART = 2**16


def add_scaled(
    total: torch.Tensor, share: float, value: torch.Tensor, before: torch.Tensor | None = None
) -> None:
    """Add share * (value - before) to a sum in float64, where it stands, a part at a time."""
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
    """Write into `results` what `step` makes of tensors of one shape, elementwise in float64."""
    flat = [tensor.reshape(-1) for tensor in tensors]
    into = [result.view(-1) for result in results]
    for first in range(0, len(flat[0]), PART):
        part = slice(first, first + PART)
        made = step(*(values[part].double() for values in flat))
        for whole, result in zip(into, made, strict=True):
            whole[part] = result


def room_for(tensors: Tensors) -> Weights:
    """Return tensors of these shapes and types to be written into.

    What stays is allocated before what does not, which would leave holes between.
    """
    room = {}
    for name, like in shapes_of(tensors).items():
        device = "cpu" if like.is_meta else like.device  # what is not read yet will be on the CPU
        room[name] = torch.empty(like.shape, dtype=like.dtype, device=device)
    return room
