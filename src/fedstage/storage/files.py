"""Writing files whole, reading small ones, and which file of a run a file is.

Every file is written under a temporary name in its folder and then renamed, so that a killed job
never leaves half a file under the real name. What a run reports is forced to disk first, so that a
machine that loses power keeps it.

The identity of a file is its path below `results`, which names recipe, round, group, participant,
client and seed. It is relative: the folder may be moved, renamed, linked, or copied to another
machine. Outside a folder of that name a path identifies nothing.
"""

import errno
import glob
import json
import os
import re
import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from fedstage.errors import FedstageError
from fedstage.plan.results import RESULTS

#: Folders below `results` whose files are forced to disk.
_REPORTED = ("tables", "claims", "choices")
#: The name under which a process writes a file: its machine, as another one may share the folder,
#: and its number there.
_TEMPORARY = re.compile(r"\..+\.(?P<machine>[^.]+)\.(?P<process>\d+)\.tmp")


#: The files that this process has written, one after the other.
WRITTEN_FILES: list[str] = []


def identity_of(path: str | Path) -> str | None:
    """Return the path below the nearest folder `results`, None where there is no such folder."""
    parts = Path(path).parts
    if RESULTS not in parts[:-1]:
        return None
    nearest = parts[-2::-1].index(RESULTS)
    return "/".join(parts[len(parts) - 1 - nearest :])


def folder_above(path: str | Path) -> Path:
    """Return the parent of the nearest folder `results`, or the current folder if there is none."""
    identity = identity_of(path)
    return Path() if identity is None else Path(path).parents[len(Path(identity).parts)]


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path to write to; rename it to `path` if the block succeeds.

    Remains of killed writers of the same file are removed. Tables, claims, choices, metrics and
    recipes are forced to disk before they are renamed, and their names before the block ends.

    Raises
    ------
    FedstageError
        If the file cannot be written: the disk is full, the file too large, or the like.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{machine()}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_strays(path.parent.glob(f".{glob.escape(path.name)}.*.tmp"))
        yield temporary
        reported = _is_reported(path)
        if reported:
            _sync(temporary)
        os.replace(temporary, path)
        WRITTEN_FILES.append(str(path))
        if reported:
            _sync_folders(path)
    except OSError as error:
        raise FedstageError(f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        with suppress(OSError):
            temporary.unlink()


def machine() -> str:
    """Return the name of this machine, without dots."""
    return socket.gethostname().replace(".", "-") or "machine"


def _remove_strays(paths: Iterable[Path]) -> None:
    """Remove the temporary files of processes of this machine that have ended."""
    for path in paths:
        match = _TEMPORARY.fullmatch(path.name)
        if match and match["machine"] == machine() and not _runs(int(match["process"])):
            with suppress(OSError):  # another process may do the same
                path.unlink(missing_ok=True)


def _runs(process: int) -> bool:
    """Whether a process of this machine exists, another user's included."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _is_reported(path: Path) -> bool:
    """Whether a file is a result that is not routinely made again."""
    identity = identity_of(path)
    folders = Path(identity).parts[:-1] if identity else ()
    if not folders or folders[0] == "logs":
        return False
    return folders[0] in _REPORTED or "metrics" in folders or path.name == "recipe.yaml"


def _sync_folders(path: Path) -> None:
    """Force the names of a file and of the folders above to disk, up to `results`."""
    for folder in path.parents:
        _sync(folder)
        if folder.name == RESULTS:
            return


def _sync(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    except OSError as error:  # EINVAL: file systems that cannot sync folders, and need not
        if error.errno != errno.EINVAL or not path.is_dir():
            raise
    finally:
        os.close(file)


def read_bytes(path: str | Path) -> bytes:
    """Read a file; raise FedstageError if that is impossible."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise FedstageError(f"{path}: {error.strerror}") from None


def save_text(path: str | Path, text: str) -> None:
    """Write text in UTF-8."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def save_json(path: str | Path, content: Mapping[str, Any]) -> None:
    """Write readable JSON, keys in the given order."""
    save_text(path, json.dumps(content, indent=2) + "\n")


def load_json(path: str | Path) -> dict[str, Any]:
    """Read a JSON object.

    Raises
    ------
    FedstageError
        If the file is missing or damaged, or holds no object.
    """
    try:
        content = json.loads(read_bytes(path))
    except (ValueError, RecursionError) as error:
        raise FedstageError(f"{path}: truncated or altered, not JSON ({error})") from None
    if not isinstance(content, dict):
        raise FedstageError(f"{path}: must be a JSON object")
    return content
