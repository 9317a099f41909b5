"""Finding the record of the job that made a file."""

import glob
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedstage.errors import FedstageError
from fedstage.plan.edges import find_origin, made_in_segment
from fedstage.plan.results import RESULTS
from fedstage.settings.lines import Line, LocalLine
from fedstage.settings.one_shot import OneShotLine
from fedstage.settings.validation import validate
from fedstage.storage.files import load_json
from fedstage.storage.provenance import SUFFIX
from fedstage.storage.yaml_files import load_yaml

#: Folders of lines. A rule that serves several of them keeps its logs in folders of the same names.
LINES = ("training", "local_models", "aggregators", "distilled_models")


@dataclass(frozen=True)
class Artefact:
    """A file, and the record of the job that made it."""

    root: Path  # the working folder, which has a folder `results`
    name: str  # path of the file, relative to `root`
    record: Path  # path of the record, relative to `root`
    job: dict[str, Any]  # the record, as `fedstage.storage.provenance` writes it


def find_artefact(path: Path) -> Artefact:
    """Return a file with the latest record of a job that made it; FedstageError if none did."""
    root, name = _split(path)
    if not (root / name).is_file():
        raise FedstageError(f"{path}: no such file")
    candidates = records_of(root, Path(name).parts[:3][-1])
    found = [(record, job) for record, job in candidates if _makes(root, job, name)]
    if not found:
        raise FedstageError(
            f"{path}: no record below {RESULTS}/logs of a job that made it: the logs were deleted, "
            "or no stage made the file"
        )
    record, job = max(
        found, key=lambda pair: (name in by_path(pair[1]["outputs"]), pair[1]["made"])
    )
    return Artefact(root, name, record.relative_to(root), job)


def _split(path: Path) -> tuple[Path, str]:
    """Return the working folder and the path below it; links are not followed."""
    whole = path.absolute()
    for folder in whole.parents:
        if folder.name == RESULTS and (folder / "logs").is_dir():
            return folder.parent, whole.relative_to(folder.parent).as_posix()
    raise FedstageError(f"{path}: must be a file below a folder {RESULTS} that has logs")


def records_of(root: Path, identity: str) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the records below a working folder whose path contains an identity, as a line's id."""
    logs = root / RESULTS / "logs"
    name = f"*{glob.escape(identity)}*"
    for pattern in (f"*/{name}", *(f"*/{folder}/{name}" for folder in LINES)):
        for place in logs.glob(pattern):
            for record in [place] if place.is_file() else place.rglob(f"*{SUFFIX}"):
                if record.name.endswith(SUFFIX):
                    yield record, load_json(record)


def _makes(root: Path, job: Mapping[str, Any], name: str) -> bool:
    """Whether a file is among the outputs of a job, or belongs to its segment."""
    return name in by_path(job["outputs"]) or made_by_segment(root, job, name)


def made_by_segment(root: Path, job: Mapping[str, Any], name: str) -> bool:
    """Whether a job is a segment to which a file belongs."""
    origin = find_origin(name)
    if origin is None or job["stage"] not in ("segment", "logits_segment"):
        return False
    options = job["options"]
    if job["stage"] == "logits_segment":
        made = (options["group"], f"logits/{options['members']}-{options['images']}")
        return origin.round in options["rounds"] and (origin.group, origin.name) == made
    line = read_settings(root / origin.folder / "line.yaml", Line)
    return made_in_segment(line, origin, options["first"], options["last"], options["groups"])


def by_path(grouped: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the files of all options with their digests."""
    return {path: digest for files in grouped.values() for path, digest in files.items()}


def read_settings(path: Path, kind: type[Line | LocalLine | OneShotLine]) -> Any:
    """Read a line's settings, of any schema; FedstageError if they are missing or invalid now."""
    if not path.is_file():
        raise FedstageError(f"{path}: no such file, so the settings are not known")
    return validate(kind, load_yaml(path).get("settings"), str(path))
