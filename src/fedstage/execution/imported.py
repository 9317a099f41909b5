"""Whether the source that a process has imported is the one that its jobs were planned with.

The plan passes on the time of the last change of any file of the package or of a plugin, as the
file system dates it. A module whose file has not changed since then is what was planned. If its
file has changed, an edit may have been imported and reverted. Then the file must not have changed
since the import began, and the job's source must be as in the files of the plan.
"""

import os
import sys
from collections.abc import Iterable
from pathlib import Path

from fedstage.errors import FedstageError
from fedstage.plan.source import Source, digest_now, read_again
from fedstage.settings.registry import PLUGINS
from fedstage.storage.files import load_json

#: The variable with the last change at the time of the plan, in ns.
PLANNED = "FEDSTAGE_PLANNED"
_TICK_NS = 20_000_000  # file systems date changes by a clock that may be this far behind

#: Modules that have been checked; modules that had changed, with the time before their import.
_SEEN: set[str] = set()
_CHANGED: dict[str, int] = {}


def last_change(files: Iterable[Path]) -> int:
    """Return when one of the files last changed, in ns; edits cannot set it back."""
    return max(path.stat().st_ctime_ns for path in files)


def look_at_imports(since_ns: int) -> None:
    """Check the modules that were imported after `since_ns`, on the clock of `time.time_ns`."""
    planned = int(os.environ.get(PLANNED) or 0)
    if not planned:
        return
    loaded = set(sys.modules)
    own = {name for name in loaded if f"{name}.".startswith("fedstage.")}
    new = (own | (PLUGINS.files.keys() & loaded)) - _SEEN
    for name in sorted(new):
        _SEEN.add(name)
        if _changed_at(name) > planned:
            _CHANGED[name] = since_ns - _TICK_NS


def planned_source(sources: Iterable[Source], since_ns: int) -> dict[str, str] | None:
    """Return the source of a job as planned, None if it is run by hand, without a plan.

    Raises
    ------
    FedstageError
        If this process, whose imports began at `since_ns`, has imported another source.
    """
    look_at_imports(since_ns)
    files = [Path(one.file) for one in sources]
    if not all(file.is_file() for file in files):
        return None
    planned = {name: code for file in files for name, code in load_json(file).items()}
    if not _CHANGED:
        return planned
    since = next((name for name, began in _CHANGED.items() if _changed_at(name) > began), None)
    read_again()
    if since is not None or any(digest_now(name) != code for name, code in planned.items()):
        path = getattr(sys.modules[since or min(_CHANGED)], "__file__", None)
        raise FedstageError(
            f"{path}: the source changed during the run; the same command makes what is left"
        )
    return planned


def _changed_at(name: str) -> int:
    """Return when a module's file last changed, in ns; for a missing file, the present time."""
    path = getattr(sys.modules.get(name), "__file__", None)
    if path is None:
        return 0
    try:
        return os.stat(path).st_ctime_ns
    except OSError:
        return sys.maxsize
