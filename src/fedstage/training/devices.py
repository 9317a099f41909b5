"""The device, threads and precision of a stage."""

import os

import torch

from fedstage.errors import FedstageError
from fedstage.settings.numerics import Numerics


def prepare(numerics: Numerics) -> torch.device:
    """Set threads, precision and determinism, and return the device.

    Everything is set every time: an earlier job of a warm worker may have set it differently.

    Raises
    ------
    FedstageError
        If this machine lacks the GPU or the precision.
    """
    torch.set_num_threads(numerics.threads)
    if torch.get_num_interop_threads() != 1:
        torch.set_num_interop_threads(1)
    device = _find(numerics.device)
    if device.type != "cuda":
        _check_cpu(numerics)
        return device
    # cuBLAS is deterministic only with a fixed workspace, chosen before its first call.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    # As use_deterministic_algorithms(True), without importing the compiler (3 s per process).
    torch.set_deterministic_debug_mode("error")
    # Deterministic mode fills each new tensor with an extra kernel; ours are always overwritten.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    torch.backends.cudnn.benchmark = False
    # By default cuDNN uses TF32 for convolutions of fp32 tensors.
    torch.backends.cudnn.allow_tf32 = numerics.precision == "tf32"
    torch.backends.cuda.matmul.allow_tf32 = numerics.precision == "tf32"
    return device


def on_device(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Copy a CPU tensor to a device, without waiting for a GPU as `to` would."""
    if device.type != "cuda":
        return tensor
    return tensor.pin_memory().to(device, non_blocking=True)


def computes_bf16() -> bool:
    """Whether the CPU has instructions for products of bf16 numbers: AMX or AVX512-BF16."""
    return bool(torch.cpu._is_amx_tile_supported() or torch.cpu._is_avx512_bf16_supported())


def _check_cpu(numerics: Numerics) -> None:
    if numerics.precision == "bf16" and not computes_bf16():
        fault = "this CPU has neither AMX nor AVX512-BF16; use fp32"
        raise FedstageError(f"numerics.precision = 'bf16': {fault}")


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
