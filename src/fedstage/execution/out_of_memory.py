"""Running out of memory: one line with the memory that was taken, and the settings to lower."""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fedstage.errors import FedstageError
from fedstage.execution.timings import most_taken, peak_mb
from fedstage.plan.stages import STAGES

# If the failing allocation is not a tensor's, the error has no class of its own.
_ON_GPU = ("CUDA error: out of memory", "_STATUS_ALLOC_FAILED")
_ON_CPU = ("DefaultCPUAllocator",)


@contextmanager
def explain_out_of_memory(
    stage: str, recipe: Path | None, participants: list[int] | None = None
) -> Iterator[None]:
    """Turn an out-of-memory error in this block into a `FedstageError` that names what to lower.

    `participants` are the ones that the job trains, if it names them. Other errors are raised
    unchanged.
    """
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        torch = sys.modules.get("torch")
        of_torch = torch is not None and isinstance(error, torch.OutOfMemoryError)
        if of_torch or _mentions(error, _ON_GPU):
            raise FedstageError(_on_gpu(stage, recipe, participants)) from None
        if isinstance(error, MemoryError) or _mentions(error, _ON_CPU):
            raise FedstageError(_on_cpu(stage, recipe, asked_mb(str(error)))) from None
        raise


def _mentions(error: Exception, texts: tuple[str, ...]) -> bool:
    return any(text in str(error) for text in texts)


def _on_gpu(stage: str, recipe: Path | None, participants: list[int] | None) -> str:
    taken = most_taken()
    cause = (
        f"{taken.peak} MB taken at the peak, of the GPU's {taken.total} MB"
        if taken
        else "other processes fill the GPU"
    )
    settings = [*_batch_sizes(stage, recipe), *_shares(stage, participants)]
    remedy = f"lower {' or '.join(settings)}" if settings else "take numerics.device = 'cpu'"
    return f"out of memory on the GPU: {cause}; {remedy}"


def _shares(stage: str, participants: list[int] | None) -> list[str]:
    """Return the settings that make several clients or jobs share the GPU now."""
    names = ["workers_per_gpu"]
    if STAGES[stage].several and (participants is None or len(participants) > 1):
        names.insert(0, "clients_per_gpu")
    numbers = {name: int(os.environ.get(f"FEDSTAGE_{name.upper()}") or 1) for name in names}
    return [f"execution.{name} = {number}" for name, number in numbers.items() if number > 1]


def _on_cpu(stage: str, recipe: Path | None, asked: int) -> str:
    settings, peak, total = _batch_sizes(stage, recipe), peak_mb(), _memory_mb()
    lower = f"lower {' or '.join(settings)}, or " if settings else ""
    if peak + asked > total:  # too much for this job alone, however few others run
        return (
            f"out of memory: {peak} MB at the peak and {asked} MB more wanted, of the machine's "
            f"{total} MB; {lower}take a smaller model or fewer samples"
        )
    return f"out of memory: {peak} MB at the peak; {lower}run fewer jobs at a time (--cores)"


def asked_mb(text: str) -> int:
    """Return the size of the failed allocation, as torch or numpy wrote it; 0 if they did not."""
    if found := re.search(r"allocate (\d+) bytes", text):
        return int(found[1]) // 2**20
    if found := re.search(r"allocate ([\d.]+) ([KMGTPE])iB", text):
        return int(float(found[1]) * 1024 ** ("KMGTPE".index(found[2]) - 1))
    return 0


def _memory_mb() -> int:
    """Return the memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20


def _batch_sizes(stage: str, recipe: Path | None) -> list[str]:
    """Return the stage's batch sizes in the recipe, with their values."""
    parts = STAGES[stage].batches
    if recipe is None or not parts:
        return []
    from fedstage.storage.yaml_files import load_yaml  # slow to import

    settings = load_yaml(recipe)["settings"]
    present = [part for part in parts if part in settings]
    return [f"{part}.batch_size = {settings[part]['batch_size']}" for part in present]
