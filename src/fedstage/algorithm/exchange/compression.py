"""Sparse updates in few bits: the variant of STC that FENS compares with.

    u = (end - start) + r        a tensor of n entries
    sent = the k = max(1, round((1 - sparsity) n)) of largest magnitude, in 16 or 32 bits
    r <- u - sent                or lost, without residuals

and the receiver goes on from start + sent. With `downstream` the server does the same to the change
of the global model.

Sparse ternary compression (Sattler et al. 2019) sends the entries' signs and one magnitude a tensor
instead; FENS keeps 16 bits an entry, and leaves open which entries, residuals and the way down.
Here they are as in STC: the largest, a residual at either end, both ways. Running statistics and
what a local trainer sends in addition to its weights are sent whole.
"""

import torch

from fedstage.settings.local_training import Stc
from fedstage.weights import Tensors, Weights, shapes_of


def transmit(
    settings: Stc, start: Tensors, end: Tensors, residual: Tensors
) -> tuple[Weights, Weights]:
    """Return start + sent, which the receiver has in place of `end`, and the next residual.

    Sender and receiver both have `start`. Tensors missing in `residual` are zero; the next one is
    empty without residuals.
    """
    received, left = {}, {}
    for name, before in start.items():
        change = end[name] - before
        if name in residual:
            change = change + residual[name]
        sent = compress(settings, change)
        received[name] = before + sent
        left[name] = change - sent
    return received, left if settings.residuals else {}


def compress(settings: Stc, change: torch.Tensor) -> torch.Tensor:
    """Return a change with its small entries at 0 and the others rounded to `bits`.

    Of equal magnitudes the first are kept, so that exactly k entries are. A number that 16 bits
    cannot hold becomes the largest that they can.
    """
    flat = change.flatten()
    chosen = _largest(flat.abs(), kept_entries(settings, flat.numel()))
    if settings.bits == 16:
        most = torch.finfo(torch.float16).max
        flat = flat.clamp(-most, most).half().to(flat.dtype)
    return torch.where(chosen, flat, 0.0).reshape(change.shape)


def kept_entries(settings: Stc, entries: int) -> int:
    """Return k, how many of a tensor's entries are sent."""
    return max(1, round((1 - settings.sparsity) * entries))


def _largest(magnitudes: torch.Tensor, number: int) -> torch.Tensor:
    """Return flags of the largest magnitudes [n]; of equal ones the first."""
    least = magnitudes.topk(number, sorted=False).values.min()
    above, equal = magnitudes > least, magnitudes == least
    return above | (equal & (equal.cumsum(0) <= number - above.sum()))


def sent_bytes(settings: Stc, tensors: Tensors) -> int:
    """Return the bytes of a compressed change of tensors of these shapes.

    Each tensor is its values and, where entries are missing, their positions: a mask of a bit an
    entry or a list of indices, whichever is shorter. ``published`` counts no positions.
    """
    return sum(_tensor_bytes(settings, tensor.numel()) for tensor in shapes_of(tensors).values())


def _tensor_bytes(settings: Stc, entries: int) -> int:
    kept = kept_entries(settings, entries)
    indices = kept * (entries - 1).bit_length()
    counted = settings.count == "encoded" and kept < entries
    positions = min(entries, indices) if counted else 0
    return -(-(kept * settings.bits + positions) // 8)
