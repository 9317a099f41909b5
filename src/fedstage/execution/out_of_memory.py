"""Running out of memory: one line that says how much was taken, and what to lower."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fedstage.errors import FedstageError
from fedstage.execution.gpu_memory import most_taken
from fedstage.execution.timings import peak_mb

#: Whose batch size decides how much memory a stage needs; others have batches of a fixed size.
BATCHES_OF = {
    "local_training": ("client",),
    "cohort": ("client",),
    "local_model": ("client",),
    "distillation": ("server",),
    "segment": ("client", "server"),
}

# Where an allocation fails that is not of a tensor, the error has no class of its own.
_ON_GPU = ("CUDA error: out of memory", "_STATUS_ALLOC_FAILED")
_ON_CPU = ("DefaultCPUAllocator",)


@contextmanager
def explained(stage: str, line: Path | None) -> Iterator[None]:
    """Explain it where memory runs out inside, of a stage and the line that it was given.

    Raises
    ------
    FedstageError
        In place of the errors of Python, torch and CUDA; others are raised as they are.
    """
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if _ran_out_on_gpu(error):
            raise FedstageError(_about_gpu(stage, line)) from None
        if isinstance(error, MemoryError) or _says(error, _ON_CPU):
            raise FedstageError(_about_cpu(stage, line)) from None
        raise


def _ran_out_on_gpu(error: Exception) -> bool:
    torch = sys.modules.get("torch")
    of_torch = torch is not None and isinstance(error, torch.OutOfMemoryError)
    return of_torch or _says(error, _ON_GPU)


def _says(error: Exception, texts: tuple[str, ...]) -> bool:
    return any(text in str(error) for text in texts)


def _about_gpu(stage: str, line: Path | None) -> str:
    taken = most_taken()
    what = (
        f"{taken.peak} MB taken at the peak, of the GPU's {taken.total} MB"
        if taken
        else "other processes fill the GPU"
    )
    settings = [*_batch_sizes(stage, line), *_shares(stage)]
    remedy = f"lower {' or '.join(settings)}" if settings else "take numerics.device = 'cpu'"
    return f"out of memory on the GPU: {what}; {remedy}"


def _shares(stage: str) -> list[str]:
    """Return what lets several clients or jobs share the GPU, where it does."""
    names = ["workers_per_gpu"]
    if stage in ("cohort", "segment"):
        names.insert(0, "clients_per_gpu")
    numbers = {name: int(os.environ.get(f"FEDSTAGE_{name.upper()}") or 1) for name in names}
    return [f"execution.{name} = {number}" for name, number in numbers.items() if number > 1]


def _about_cpu(stage: str, line: Path | None) -> str:
    settings = _batch_sizes(stage, line)
    remedy = f"lower {' or '.join(settings)}, or run" if settings else "run"
    return f"out of memory: {peak_mb()} MB at the peak; {remedy} fewer jobs at a time (--cores)"


def _batch_sizes(stage: str, line: Path | None) -> list[str]:
    """Return the batch sizes that the stage has, with their values."""
    if line is None or stage not in BATCHES_OF:
        return []
    from fedstage.storage.yaml_files import load_yaml  # slow to import

    settings = load_yaml(line)["settings"]
    return [
        f"{part}.batch_size = {settings[part]['batch_size']}"
        for part in BATCHES_OF[stage]
        if part in settings
    ]
