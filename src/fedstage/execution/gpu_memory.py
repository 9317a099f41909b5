"""How much memory of a GPU a stage took.

Where no stage has used CUDA yet, nothing is asked of it: that alone would start it.
"""

import sys
from dataclasses import dataclass
from typing import Any

MEGABYTE = 2**20


@dataclass(frozen=True)
class Taken:
    """Megabytes that tensors took on a GPU at the peak, and that the GPU has."""

    peak: int
    total: int


def forget_peak() -> None:
    """Forget the memory that earlier stages of a warm worker needed."""
    cuda = _cuda()
    for device in range(cuda.device_count() if cuda else 0):
        cuda.reset_peak_memory_stats(device)


def most_taken() -> Taken | None:
    """Return what was taken on the GPU where it was most; None if no GPU was used."""
    cuda = _cuda()
    peaks = {
        device: cuda.max_memory_allocated(device)
        for device in range(cuda.device_count() if cuda else 0)
    }
    device = max(peaks, key=peaks.__getitem__, default=None)
    if device is None or not peaks[device]:
        return None
    total = cuda.get_device_properties(device).total_memory
    return Taken(peaks[device] // MEGABYTE, total // MEGABYTE)


def _cuda() -> Any:
    """Return torch.cuda if it has been used in this process."""
    torch = sys.modules.get("torch")
    return torch.cuda if torch is not None and torch.cuda.is_initialized() else None
