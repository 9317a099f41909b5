"""What killed processes have left: temporary files in `results`, and sockets of pools."""

import os
import re
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path

from fedstage.execution.client import alive
from fedstage.plan.results import RESULTS
from fedstage.storage.strays import remove_strays

#: Where sockets are if the environment names no other place.
_SHARED = "/tmp"

#: A pool's files are called after the process that it ends with, and the machine of that.
_POOL = re.compile(r"(?P<place>.+?)(-job\w+)?-(?P<process>\d+)\.sock(\.lock|\.log)?")


def sweep(root: Path, environment: Mapping[str, str]) -> list[Path]:
    """Remove what processes of this machine that have ended have left; return what it was."""
    found = remove_strays((root / RESULTS).rglob(".*.tmp"))
    for path in _pool_files(environment):
        match = _POOL.fullmatch(path.name)
        here = match is not None and match["place"] == socket.gethostname()
        if match is not None and here and not alive(int(match["process"])):
            path.unlink(missing_ok=True)
            found.append(path)
    return found


def _pool_files(environment: Mapping[str, str]) -> Iterator[Path]:
    """Yield the files in this user's folders of sockets."""
    bases = [environment.get("XDG_RUNTIME_DIR"), environment.get("TMPDIR"), _SHARED]
    for base in dict.fromkeys(filter(None, bases)):
        for folder in Path(base).glob(f"fedstage-{os.getuid()}*"):
            if not folder.is_symlink() and folder.is_dir() and folder.stat().st_uid == os.getuid():
                yield from folder.iterdir()
