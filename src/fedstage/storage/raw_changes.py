"""Changes in the raw files behind a result, for ``fedstage why`` and ``verify``."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from fedstage.errors import FedstageError
from fedstage.plan.results import RESULTS
from fedstage.storage.files import load_json
from fedstage.storage.provenance import SUFFIX
from fedstage.storage.raw_contents import Contents, raw_of_job
from fedstage.storage.yaml_files import load_yaml

UNCHANGED, ADDED = ", unchanged", ", added"
_WAS = ", was "


class Changes(NamedTuple):
    """The raw files of a data set: their folder, and a pair (what became of it, name) for each."""

    data: str
    folder: Path
    files: list[tuple[str, str]]


def altered(files: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield the raw files, as in `Changes`, that were different or absent when they were read."""
    return ((how, name) for how, name in files if how.endswith(ADDED) or _WAS in how)


def raw_changes(root: Path, files: Iterable[str], folder: Path | None) -> Iterator[Changes]:
    """Yield the raw files of each data set that `files` below a working folder belong to.

    They are looked for in the data folder that a run would read: the one in ``config.yaml``, or
    `folder`, or else the one from which the job read them.
    """
    found = (re.match(rf"{RESULTS}/data/([^/]+)/", file) for file in files)
    for data in dict.fromkeys(match[1] for match in found if match):
        path = root / RESULTS / "logs" / "dataset" / f"{data}{SUFFIX}"
        try:
            job = load_json(path) if path.is_file() else {}
        except FedstageError as error:
            yield Changes(data, path.parent, [("its record is damaged, left out", str(error))])
            continue
        then = job.get("raw", {"folder": None, "files": {}})
        place = _configured(root) or folder or then["folder"]
        if job and place is not None:
            yield Changes(data, Path(place), list(_compare(job, then["files"], Path(place))))


def _compare(job: dict[str, Any], then: Contents, folder: Path) -> Iterator[tuple[str, str]]:
    files = raw_of_job(job["options"]["settings"], folder).get("raw", {}).get("files", {})
    if then and not files:
        yield "not there now, so the result stays", f"all {len(then)}"
        return
    if files and not then:
        yield "not recorded: made before the records named raw files", f"all {len(files)}"
        return
    for name in sorted({*then, *files}):
        digest = files.get(name, "gone")
        if name not in then:
            yield f"{digest}{ADDED}", name
        else:
            same = digest == then[name]
            yield (f"{digest}{UNCHANGED}" if same else f"{digest}{_WAS}{then[name]}"), name


def _configured(root: Path) -> Path | None:
    """Return the data folder of a working folder's configuration, if it names one."""
    path = root / "config.yaml"
    try:
        folder = load_yaml(path).get("data_folder") if path.is_file() else None
    except FedstageError:
        return None
    return root / folder if isinstance(folder, str) else None
