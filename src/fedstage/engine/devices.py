"""Where and with how many threads a stage computes."""

import os

import torch

from fedstage.config import Numerics
from fedstage.errors import FedstageError


def prepare(numerics: Numerics) -> torch.device:
    """Set threads and determinism, and return the device.

    Raises
    ------
    FedstageError
        If a GPU is asked for that this machine does not have.
    """
    torch.set_num_threads(numerics.threads)
    if torch.get_num_interop_threads() != 1:
        torch.set_num_interop_threads(1)
    device = _find(numerics.device)
    if device.type == "cuda":
        # cuBLAS is deterministic only with a fixed workspace, chosen before its first call.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        # As use_deterministic_algorithms(True), without importing the compiler (3 s a process).
        torch.set_deterministic_debug_mode("error")
        torch.backends.cudnn.benchmark = False
    return device


def _find(name: str) -> torch.device:
    available = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name == "auto":
        return torch.device("cuda" if available else "cpu")
    device = torch.device(name)
    if device.type == "cuda" and (device.index or 0) >= available:
        raise FedstageError(
            f"numerics.device = {name!r}: this machine has {available} usable GPUs; use auto or cpu"
        )
    return device
