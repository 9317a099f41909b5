"""Sparse updates in few bits: the variant of STC with which FENS is compared.

    u = (end - start) + r        a tensor of n entries
    sent = the k = max(1, round((1 - sparsity) n)) entries of largest magnitude, in 16 or 32 bits
    r <- u - sent

The receiver continues from start + sent. The server does the same to the change of the global
model.

Sparse ternary compression (Sattler et al. 2019) instead sends the entries' signs and one magnitude
per tensor. FENS keeps 16 bits per entry, and does not specify which entries are sent, whether
residuals are kept, or whether downloads are compressed. Here these follow STC: the largest entries,
a residual at either end, both directions. Running statistics and what a local trainer sends in
addition to its weights are sent whole.
"""

import torch

from fedstage.settings.local_training import Stc
from fedstage.weights import Tensors, Weights, shapes_of


def transmit(
    settings: Stc, start: Tensors, end: Tensors, residual: Tensors
) -> tuple[Weights, Weights]:
    """Return start + sent, which the receiver uses in place of `end`, and the next residual.

    Sender and receiver both have `start`. Tensors missing from `residual` count as zero.
    """
    received, left = {}, {}
    for name, before in start.items():
        change = end[name] - before
        if name in residual:
            change = change + residual[name]
        sent = compress(settings, change)
        received[name] = before + sent
        left[name] = change - sent
    return received, left


def compress(settings: Stc, change: torch.Tensor) -> torch.Tensor:
    """Return a change with its small entries set to 0 and the others rounded to `bits` bits.

    Among equal magnitudes the first are kept, so that exactly k entries remain. A number too large
    for 16 bits becomes the largest that they can hold.
    """
    flat = change.flatten()
    chosen = _largest(flat.abs(), kept_entries(settings, flat.numel()))
    if settings.bits == 16:
        most = torch.finfo(torch.float16).max
        flat = flat.clamp(-most, most).half().to(flat.dtype)
    return torch.where(chosen, flat, 0.0).reshape(change.shape)


def kept_entries(settings: Stc, entries: int) -> int:
    """Return k, the number of a tensor's entries that are sent."""
    return max(1, round((1 - settings.sparsity) * entries))


def _largest(magnitudes: torch.Tensor, number: int) -> torch.Tensor:
    """Return a mask [n] of the `number` largest magnitudes; among equal ones, the first."""
    least = magnitudes.topk(number, sorted=False).values.min()
    above, equal = magnitudes > least, magnitudes == least
    return above | (equal & (equal.cumsum(0) <= number - above.sum()))


def sent_bytes(settings: Stc, tensors: Tensors) -> int:
    """Return the bytes of a compressed change of tensors of these shapes.

    A tensor is sent as its values and, unless all are sent, their positions: a mask of one bit per
    entry or a list of indices, whichever is shorter.
    """
    return sum(_tensor_bytes(settings, tensor.numel()) for tensor in shapes_of(tensors).values())


def _tensor_bytes(settings: Stc, entries: int) -> int:
    kept = kept_entries(settings, entries)
    indices = kept * (entries - 1).bit_length()
    positions = min(entries, indices) if kept < entries else 0
    return -(-(kept * settings.bits + positions) // 8)
