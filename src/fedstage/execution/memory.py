"""Memory on GPUs: how much tensors take there at the peak."""

import sys
from typing import Any, NamedTuple

MEGABYTE = 2**20


class Taken(NamedTuple):
    """Megabytes that tensors took on a GPU at the peak, and that the GPU has."""

    peak: int
    total: int


def forget_peak() -> None:
    """Reset the peak on each GPU, so that earlier stages of a warm worker do not count."""
    cuda = _cuda()
    for device in range(cuda.device_count() if cuda else 0):
        cuda.reset_peak_memory_stats(device)


def most_taken() -> Taken | None:
    """Return the memory taken on the GPU with the highest peak; None if no GPU was used."""
    cuda = _cuda()
    devices = range(cuda.device_count() if cuda else 0)
    peaks = [cuda.max_memory_allocated(device) for device in devices]
    if not any(peaks):
        return None
    total = cuda.get_device_properties(peaks.index(max(peaks))).total_memory
    return Taken(max(peaks) // MEGABYTE, total // MEGABYTE)


def _cuda() -> Any:
    """Return torch.cuda if it has been used in this process."""
    torch = sys.modules.get("torch")
    return torch.cuda if torch is not None and torch.cuda.is_initialized() else None
