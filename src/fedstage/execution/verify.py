"""``fedstage verify``: check the files of finished work, and remove what killed jobs left."""

import os
import re
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from fedstage.data.folder import default_folder
from fedstage.errors import FedstageError
from fedstage.execution.missing import finished, gone, options_of, summary, working_folder
from fedstage.execution.processes import alive
from fedstage.plan.results import RESULTS
from fedstage.settings.command_lines import as_typed
from fedstage.settings.config_file import Execution
from fedstage.settings.validation import validate
from fedstage.storage.provenance import SUFFIX as RECORD
from fedstage.storage.raw_changes import ADDED, altered, raw_changes
from fedstage.storage.strays import remove_strays
from fedstage.storage.verification import faults
from fedstage.storage.yaml_files import load_yaml

#: The folder of sockets if the environment names no other one.
_SHARED = "/tmp"

#: A pool's files are named after the process that it ends with, and that process's machine.
_POOL = re.compile(r"(?P<place>.+?)(-job\w+)?-(?P<process>\d+)\.sock(\.lock|\.log)?")


def list_faults(arguments: Sequence[str]) -> str:
    """Return a message that all files are right, after removing what killed processes have left.

    Of files that the next run makes again, only the content is checked, and their number returned.

    `arguments` are as in `fedstage.execution.missing.summary`.

    Raises
    ------
    FedstageError
        If any file is wrong or missing: each has been printed with its reason, and the message has
        the command that makes them again. Also if snakemake cannot plan the targets.
    """
    root = working_folder(arguments)
    for path in sweep(root, os.environ):
        print(f"{path}: removed, left by a process that has ended", file=sys.stderr)
    rows = summary(arguments)
    files = dict.fromkeys(row["output_file"] for row in rows)
    there = [name for name in files if (root / name).is_file()]
    done = finished(rows)
    wrong = dict.fromkeys(gone(rows), "is gone")
    wrong |= dict(faults(root, there, done, _accepts_other_source(root)))
    raw = dict(_raw_faults(root, [name for name in there if name not in done]))
    for name, reason in {**wrong, **raw}.items():
        print(f"{name}: {reason}", flush=True)
    cures = [_cure(list(wrong), there, arguments)] if wrong else []
    cures += [_cure_of_raw(len(raw), arguments)] if raw else []
    if cures:
        raise FedstageError("; ".join(cures))
    return _verdict(len(there), sum(name not in done for name in there))


def _verdict(there: int, stale: int) -> str:
    """Return how many files are right, and how many could not be compared."""
    right = there - stale
    matching = (
        "1 file matches its record and inputs"
        if right == 1
        else f"{right} files match their records and inputs"
    )
    if not stale:
        return matching
    are, them = ("is", "it") if stale == 1 else ("are", "them")
    return (
        f"{matching}; {stale} more {are} out of date and not compared: the next run makes {them} "
        "again"
    )


def _accepts_other_source(root: Path) -> bool:
    """Whether the configuration of a working folder accepts files of another source."""
    path = root / "config.yaml"
    raw = load_yaml(path) if path.is_file() else {}
    execution = validate(Execution, raw.get("execution", {}), f"{path}: execution")
    return execution.other_source == "accept"


def _raw_faults(root: Path, planned: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the raw files that differ from what the data sets among `planned` files were made of.

    `planned` are the files that the next run makes. A data set is not among them if the run reads
    the same raw files from another place.
    """
    for data, folder, files in raw_changes(root, planned, default_folder()):
        for how, name in altered(files):
            since = "since" if how.endswith(ADDED) else "when"
            yield str(folder / name), f"{how} {since} {RESULTS}/data/{data} was made"


def _cure_of_raw(count: int, arguments: Sequence[str]) -> str:
    """Return how many raw files differ, and the command that makes results from the new ones."""
    command = as_typed("snakemake", "--cores", "all", *arguments)
    files = "1 raw file differs" if count == 1 else f"{count} raw files differ"
    return f"{files} from what results were made of; to update these: {command}"


def _cure(wrong: Sequence[str], there: Sequence[str], arguments: Sequence[str]) -> str:
    """Return how many files are wrong, and the command that makes them again."""
    names = [name for name in wrong if not name.endswith(RECORD)]
    count = f"{len(wrong)} wrong or gone, of {len(there)} files there"
    if not names:
        return f"{count}: records only, which nothing makes again; delete them"
    options = [*options_of(arguments), "--force", *names]
    command = as_typed("snakemake", "--cores", "all", *options)
    return f"{count}; to make them again: {command}"


def sweep(root: Path, environment: Mapping[str, str]) -> list[Path]:
    """Remove files left by ended processes of this machine; return their paths."""
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
