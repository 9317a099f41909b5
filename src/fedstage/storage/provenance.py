"""Provenance: what each job read and wrote, with which options and which source.

A record is a JSON file below `results/logs`, the log of the job for Snakemake. Each job writes its
own, as its last step, because many jobs of a recipe may end at the same time. A record holds times,
so it cannot be among the artefacts, which are compared byte by byte. The record of a job that has
failed has the error in place of files.
"""

import hashlib
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

from fedstage.plan.graph import listed
from fedstage.storage.tensors import CHECKSUM, read_header

SUFFIX = ".json"
#: The key, in a record of a job that has failed, of the lines that say why.
ERROR = "error"
#: The key, in a record, of the seconds of the parts of a job, by the file that each made.
PARTS = "parts"
#: The key, in a record, of the digests of the files that a segment left, by path.
WRITTEN = "written"

DIGITS = 16  # hexadecimal, of a SHA-256 in a record


@cache
def versions() -> dict[str, str]:
    """Return the versions that numbers may depend on."""
    from importlib.metadata import version  # slow to import

    found = {name: version(name) for name in ("fedstage", "torch", "numpy")}
    return found | {"python": platform.python_version()}


@cache
def commit() -> str | None:
    """Return the commit of the package, ending in -dirty if files differ; None if it has none."""
    git = ["git", "-C", str(Path(__file__).parents[1])]
    described = ["describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        # The repository around an installed package is another project's.
        if not _output([*git, "ls-files", "__init__.py"]):
            return None
        return _output([*git, *described])
    except (OSError, subprocess.CalledProcessError):
        return None


def _output(command: list[str]) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def machine() -> dict[str, Any]:
    """Return the processor, the number of cores that the job may use, and the GPU if any."""
    return {"processor": _processor(), "cores": len(os.sched_getaffinity(0)), "gpu": _gpu()}


@cache
def _processor() -> str:
    """Return the processor's name, or its architecture if the system does not give one."""
    rows = Path("/proc/cpuinfo").read_text().splitlines()
    names = (row.partition(":")[2].strip() for row in rows if row.startswith("model name"))
    return next(names, platform.machine())


def _gpu() -> str | None:
    """Return the GPU that this process has used; torch is not imported to find out."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return None
    return str(torch.cuda.get_device_name())


def content_digest(path: Path) -> str | None:
    """Return 16 hexadecimal digits of a file's SHA-256; None if there is no file.

    For a safetensors file, which may be large, this is the SHA-256 in its own metadata, which every
    stage verifies when it reads the file. Files without one are digested as a whole.
    """
    if not path.is_file():
        return None
    with path.open("rb") as file:
        if path.suffix == ".safetensors" and (stated := _stated_checksum(file)):
            return stated[:DIGITS]
        file.seek(0)
        return hashlib.file_digest(file, "sha256").hexdigest()[:DIGITS]


def digests(files: str | Sequence[str]) -> dict[str, str | None]:
    """Return files with their digests, None where there is no file."""
    return {str(path): content_digest(Path(path)) for path in listed(files)}


def _stated_checksum(file: BinaryIO) -> str | None:
    """Return the checksum in a safetensors file's metadata; None if it has none."""
    with suppress(ValueError, KeyError):
        return str(read_header(file).metadata[CHECKSUM])
    return None
