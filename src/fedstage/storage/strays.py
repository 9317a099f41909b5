"""Temporary files that killed writers have left.

Their names identify the writer: the machine, because another one may share the folder, and the
process there.
"""

import os
import re
import socket
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_NAME = re.compile(r"\.(?P<name>.+)\.(?P<machine>[^.]+)\.(?P<process>\d+)\.tmp")


def temporary_name(name: str) -> str:
    """Return the name under which this process writes a file of this name."""
    return f".{name}.{machine()}.{os.getpid()}.tmp"


def machine() -> str:
    """Return the name of this machine, without dots."""
    return socket.gethostname().replace(".", "-") or "machine"


def written_for(path: Path) -> Path | None:
    """Return the file that is written under a temporary name, None for any other name."""
    match = _NAME.fullmatch(path.name)
    return None if match is None else path.with_name(match["name"])


def is_stray(path: Path) -> bool:
    """Whether a file is a temporary file of a process of this machine that has ended."""
    match = _NAME.fullmatch(path.name)
    return match is not None and match["machine"] == machine() and not _runs(int(match["process"]))


def remove_strays(paths: Iterable[Path]) -> list[Path]:
    """Remove the strays among files, and return them."""
    found = [path for path in paths if is_stray(path)]
    for path in found:
        with suppress(OSError):  # another process may do the same
            path.unlink(missing_ok=True)
    return found


def _runs(process: int) -> bool:
    """Whether a process of this machine exists, another user's included."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
