"""Memory that tensors have freed: kept during a job, given back after it.

By default glibc returns large blocks to the system as soon as they are free, and a training step
allocates the same blocks again: thousands of page faults a step, a fifth of the time of a ResNet-20
in bf16. With other C libraries, which have neither function, nothing is done.
"""

import ctypes
import sys
from typing import Any, NamedTuple

#: Parameters of mallopt, as glibc's malloc.h numbers them.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_LARGEST_THRESHOLD = 32 * 1024**2  # the largest that glibc accepts for mmap
_NEVER = 2**31 - 1
MEGABYTE = 2**20


def keep_freed() -> None:
    """Let this process and its forks keep free memory, to be used again."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(_MMAP_THRESHOLD, _LARGEST_THRESHOLD)
        libc.mallopt(_TRIM_THRESHOLD, _NEVER)


def give_back() -> None:
    """Return free memory to the system."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):
        libc.malloc_trim(0)


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
