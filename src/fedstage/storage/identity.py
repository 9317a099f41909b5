"""The identity of a file, and the source that made it, as every artefact states them.

The identity of a file is its path below `results`.

Such a path names recipe, round, group, participant, client and seed. Writers state the path that
they write to, and readers compare it with the path that they open, so a copy in place of another
file is refused. The path is relative: the folder may be moved, renamed, linked, or copied to
another machine. Outside a folder of that name a path identifies nothing, and nothing is compared.

Within `making`, writers also state the fingerprint of the source of their job. Readers compare it
with the fingerprints that the plan gave to the jobs that make their inputs. So an older version of
the same file is refused, too.
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedstage.errors import FedstageError
from fedstage.plan.results import RESULTS
from fedstage.settings.command_lines import as_typed

#: The key of an artefact's own statements: in the metadata of Parquet, at the top of JSON and YAML.
SEAL = "fedstage"

#: Folders below `results` whose files, like `recipe.yaml`, follow from no stage's source: settings,
#: which are compared by their content, and notes of jobs.
_UNSTATED = ("logs", "descriptions")


@dataclass(frozen=True)
class Making:
    """A job: its source, the sources whose files it may read (none: all), and the files written."""

    source: str | None = None
    read: Collection[str] = ()
    written: dict[str, None] = field(default_factory=dict)


_MAKING: ContextVar[Making] = ContextVar("_MAKING", default=Making())  # noqa: B039 - never changed


@contextmanager
def making(source: str | None, read: Collection[str] = ()) -> Iterator[Making]:
    """State `source` in all files that are written, and refuse files that other sources made.

    Parameters
    ----------
    read : collection of str
        The fingerprints of files that may be read, in addition to `source`; any if there are none.
    """
    job = Making(source, read)
    token = _MAKING.set(job)
    try:
        yield job
    finally:
        _MAKING.reset(token)


def note_written(path: str | Path) -> None:
    """Note that the present job has written a file."""
    _MAKING.get().written.setdefault(str(path))


def statement(path: str | Path) -> dict[str, str]:
    """Return what the file at `path` states in itself: its identity and the source of its job."""
    identity = identity_of(path)
    if identity is None:
        return {}
    source = _MAKING.get().source
    return {"file": identity} | ({"source": source} if source and _has_source(identity) else {})


def check_statement(path: str | Path, stated: Mapping[str, Any]) -> None:
    """Raise FedstageError unless the file at `path` states its identity and a planned source."""
    check_identity(path, stated.get("file"))
    job, identity, source = _MAKING.get(), identity_of(path), stated.get("source")
    allowed = {*job.read, job.source} if job.read else {source}
    if identity is not None and _has_source(identity) and source not in allowed:
        which = f"source {source}" if source else "a source that it does not state"
        raise FedstageError(
            f"{path}: made by {which}, not by that of the plan "
            f"({', '.join(sorted(filter(None, allowed)))}): an older version; delete it to make it "
            f"again ({as_typed('fedstage', 'verify')} lists all such files), or keep them with "
            "execution: {other_source: accept} in config.yaml"
        )


def _has_source(identity: str) -> bool:
    parts = identity.split("/")
    return parts[0] not in _UNSTATED and parts[-1] != "recipe.yaml"


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


def check_identity(path: str | Path, stated: object) -> None:
    """Raise FedstageError unless the file at `path` states its own identity.

    A folder above may be a link into another folder `results`, so the end of the path counts.
    """
    expected = identity_of(path)
    if expected is None or f"/{expected}".endswith(f"/{stated}"):
        return
    if stated is None:
        reason = "does not state which file it is: an older version wrote it, or somebody moved it"
    else:
        reason = f"is {stated}, not {expected}: a copy in its place"
    raise FedstageError(f"{path}: {reason}; delete it to make it again")
