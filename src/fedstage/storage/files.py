"""Writing files whole, and reading small ones; standard library only.

Every file is written under a temporary name beside its place and renamed, so that a killed job
leaves no half of a file under the real name.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fedstage.errors import FedstageError


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Give a temporary path to write to; rename it to `path` if the block succeeds."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def read_bytes(path: str | Path) -> bytes:
    """Read a file.

    Raises
    ------
    FedstageError
        If it cannot be read.
    """
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise FedstageError(f"{path}: {error.strerror}") from None


def save_json(path: str | Path, content: Mapping[str, Any]) -> None:
    """Write JSON that a person can read, keys in the given order."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(content, indent=2) + "\n")


def load_json(path: str | Path) -> dict[str, Any]:
    """Read a JSON object.

    Raises
    ------
    FedstageError
        If the file is missing or is not a JSON object.
    """
    try:
        content = json.loads(read_bytes(path))
    except ValueError as error:
        raise FedstageError(f"{path}: truncated or altered, not JSON ({error})") from None
    if not isinstance(content, dict):
        raise FedstageError(f"{path}: must be a JSON object")
    return content
