"""Provenance: what each job read and wrote, with which options and which source.

A record is a JSON file beside the job's log, below `results/logs`. It is written by the job itself,
as the last thing that it does, and by no other job: many jobs of a line may end at the same time.
It holds times, so it cannot stand among the artefacts, which are compared byte by byte.
"""

import hashlib
import json
import os
import platform
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from fedstage.storage.files import save_json

SUFFIX = ".record.json"

#: The options of a stage that name what it writes; its other paths are what it reads. A segment
#: writes what `fedstage.plan.artefacts` says.
OUTPUTS = {
    "line": ("output",),
    "dataset": ("train", "test", "held_out", "server_validation", "test_own", "info"),
    "partition": ("output", "histogram"),
    "participation": ("output",),
    "initial_model": ("output",),
    "local_training": ("output",),
    "cohort": ("outputs",),
    "aggregation": ("output", "participants", "new_state"),
    "logits": ("output",),
    "distillation": ("output",),
    "evaluation": ("output",),
    "local_model": ("output",),
    "local_evaluation": ("output",),
    "quantised_model": ("output",),
    "client_logits": ("output",),
    "aggregator": ("output", "rounds"),
    "distilled_model": ("output",),
    "one_shot_evaluation": ("output",),
    "choice": ("output", "chosen"),
    "forgetting": ("markdown", "csv"),
    "tables": ("csv", "parquet", "markdown", "html", "latex"),
    "figures": ("accuracy", "partition"),
    "comparison": ("figure",),
    "sweep": ("figure",),
    "communication": ("csv", "parquet", "by_run", "markdown", "html", "figure"),
    "claims": ("csv", "parquet", "markdown", "html"),
    "properties": ("markdown", "csv"),
    "simulation": ("markdown", "csv", "jobs", "figure"),
    "round_times": ("markdown", "csv", "parquet", "by_run"),
}

_LENGTH = 8  # a safetensors file starts with the header's length, 8 bytes little endian
_DIGITS = 16


def write_record(
    log: Path,
    stage: str,
    options: Mapping[str, Any],
    source: str | None,
    figures: Mapping[str, float],
) -> None:
    """Write the record of a job that has succeeded.

    Parameters
    ----------
    log : Path
        The job's log.
    options : Mapping
        The keyword arguments of the stage function.
    source : str or None
        The fingerprint of the source, as the rule states it.
    figures : Mapping
        Seconds and memory, of `fedstage.execution.timings`.
    """
    written = OUTPUTS.get(stage, ())
    files = {name: _files(value) for name, value in options.items()}
    record = {
        "stage": stage,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "source": source,
        "versions": versions(),
        "machine": machine(),
        **figures,
        "options": {
            name: value
            for name, value in options.items()
            if not files[name] and value not in (None, [])
        },
        "inputs": {name: read for name, read in files.items() if read and name not in written},
        "outputs": {name: files[name] for name in written if files.get(name)},
    }
    save_json(record_path(log), record)


def record_path(log: Path) -> Path:
    """Return where the record of the job with this log is."""
    return log.with_suffix(SUFFIX)


@cache
def versions() -> dict[str, str]:
    """Return the versions that numbers may depend on."""
    from importlib.metadata import version  # slow to import

    found = {name: version(name) for name in ("fedstage", "torch", "numpy")}
    return found | {"python": platform.python_version()}


def machine() -> dict[str, Any]:
    """Return what computed: the processor, how many cores the job may use, and the GPU if any."""
    return {"processor": _processor(), "cores": _usable_cores(), "gpu": _gpu()}


@cache
def _processor() -> str:
    """Return the processor's name (Linux: /proc)."""
    try:
        rows = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (row.partition(":")[2].strip() for row in rows if row.startswith("model name"))
    return next(names, platform.machine())


def _usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _gpu() -> str | None:
    """Return the GPU that this process has used; torch is not imported to find out."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return None
    return str(torch.cuda.get_device_name())


def content_digest(path: Path) -> str | None:
    """Return 16 hexadecimal digits of a file's SHA-256; None where there is no file.

    Of a safetensors file, which may be large, it is the SHA-256 that stands in its own metadata and
    that every stage verifies when it reads the file; a file that has none is digested as a whole.
    """
    if not path.is_file():
        return None
    if path.suffix == ".safetensors" and (stated := _stated_checksum(path)):
        return stated[:_DIGITS]
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:_DIGITS]


def _files(value: Any) -> dict[str, str | None]:
    """Return the files that an option names, with their digests."""
    paths = value if isinstance(value, list) else [value]
    return {str(path): content_digest(path) for path in paths if isinstance(path, Path)}


def _stated_checksum(path: Path) -> str | None:
    """Return the checksum that a safetensors file states; None if it is cut off or has none."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(_LENGTH), "little")
        header = file.read(min(length, size))
    try:
        tensors = json.loads(header)
        checksum = str(tensors.pop("__metadata__")["sha256"])
        ends = [int(tensor["data_offsets"][1]) for tensor in tensors.values()]
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return checksum if _LENGTH + length + max(ends, default=0) == size else None
