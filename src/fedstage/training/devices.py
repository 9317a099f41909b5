"""Where, with how many threads and in which precision a stage computes."""

import os
import shutil

import torch

from fedstage.errors import FedstageError
from fedstage.settings.numerics import Numerics


def prepare(numerics: Numerics) -> torch.device:
    """Set threads, precision and determinism, and return the device.

    Everything is set whatever it was: a warm worker may have computed otherwise before.

    Raises
    ------
    FedstageError
        If a GPU, a precision or a compiler is asked for that this machine does not have.
    """
    torch.set_num_threads(numerics.threads)
    if torch.get_num_interop_threads() != 1:
        torch.set_num_interop_threads(1)
    device = _find(numerics.device)
    _check(numerics, device)
    if device.type == "cuda":
        # cuBLAS is deterministic only with a fixed workspace, chosen before its first call.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        # As use_deterministic_algorithms(True), without importing the compiler (3 s a process).
        torch.set_deterministic_debug_mode("error")
        # By then every new tensor would be filled first, a kernel each, though all are written to.
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
        torch.backends.cudnn.benchmark = False
        # By default cuDNN takes TF32 for convolutions in what calls itself fp32.
        torch.backends.cudnn.allow_tf32 = numerics.precision == "tf32"
        torch.backends.cuda.matmul.allow_tf32 = numerics.precision == "tf32"
    return device


def on_device(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Return a tensor of the CPU on a device; a GPU is not waited for, as `to` would."""
    if device.type != "cuda":
        return tensor
    return tensor.pin_memory().to(device, non_blocking=True)


def computes_bf16() -> bool:
    """Whether the CPU has instructions for products of bf16 numbers: AMX or AVX512-BF16."""
    return bool(torch.cpu._is_amx_tile_supported() or torch.cpu._is_avx512_bf16_supported())


def has_compiler() -> bool:
    """Whether there is a C++ compiler, which `torch.compile` needs on a CPU."""
    return any(map(shutil.which, filter(None, (os.environ.get("CXX"), "g++", "c++", "clang++"))))


def _check(numerics: Numerics, device: torch.device) -> None:
    if device.type == "cuda":
        return
    if numerics.precision == "bf16" and not computes_bf16():
        raise FedstageError(
            "numerics.precision = 'bf16': this CPU has neither AMX nor AVX512-BF16; use fp32"
        )
    if numerics.compile and not has_compiler():
        raise FedstageError(
            "numerics.compile = true: this machine has no C++ compiler (CXX, g++, c++, clang++); "
            "install one or use false"
        )


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
