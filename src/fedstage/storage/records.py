"""Finding the record of the job that made a file."""

import glob
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedstage.errors import FedstageError
from fedstage.plan.artefacts import RESULTS
from fedstage.plan.edges import find_origin, made_in_segment
from fedstage.settings.lines import Line, LocalLine
from fedstage.settings.one_shot import OneShotLine
from fedstage.settings.validation import validate
from fedstage.storage.files import load_json
from fedstage.storage.provenance import SUFFIX
from fedstage.storage.yaml_files import load_yaml


@dataclass(frozen=True)
class Artefact:
    """A file, and the record of the job that made it.

    Attributes
    ----------
    root : Path
        The working folder, in which `results` is.
    name : str
        Path relative to it.
    record : Path
        Where the record is, relative to it.
    job : dict
        The record, as `fedstage.storage.provenance` writes it.
    """

    root: Path
    name: str
    record: Path
    job: dict[str, Any]


def find_artefact(path: Path) -> Artefact:
    """Return a file with the latest record of a job that made it.

    Raises
    ------
    FedstageError
        If there is no such file, or no record.
    """
    root, name = _split(path)
    if not (root / name).is_file():
        raise FedstageError(f"{path}: no such file")
    found = [(record, job) for record, job in _records(root, name) if _makes(root, job, name)]
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


def _records(root: Path, name: str) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Return the records that may be of a file."""
    return records_of(root, Path(name).parts[:3][-1])


def records_of(root: Path, identity: str) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the records of a folder's jobs: those with its name, a line's id say, in their path.

    Parameters
    ----------
    root : Path
        The working folder, in which `results` is.
    """
    for place in (root / RESULTS / "logs").glob(f"*/*{glob.escape(identity)}*"):
        for record in [place] if place.is_file() else place.rglob(f"*{SUFFIX}"):
            if record.name.endswith(SUFFIX):
                yield record, load_json(record)


def _makes(root: Path, job: Mapping[str, Any], name: str) -> bool:
    """Whether a job made a file: it is among the outputs, or belongs to the job's segment."""
    if name in by_path(job["outputs"]):
        return True
    origin = find_origin(name)
    if origin is None or job["stage"] not in ("segment", "logits_segment"):
        return False
    options = job["options"]
    if job["stage"] == "logits_segment":
        wanted = (options["group"], f"logits/{options['members']}-{options['images']}")
        return origin.round in options["rounds"] and (origin.group, origin.name) == wanted
    line = read_settings(root / origin.folder / "line.yaml", Line)
    return made_in_segment(line, origin, options["first"], options["last"], options["groups"])


def by_path(grouped: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the files of all options with their digests."""
    return {path: digest for files in grouped.values() for path, digest in files.items()}


def read_settings(path: Path, kind: type[Line | LocalLine | OneShotLine]) -> Any:
    """Read the settings of a line, without torch.

    Raises
    ------
    FedstageError
        If the file is missing, or not valid for this version of the package.
    """
    if not path.is_file():
        raise FedstageError(f"{path}: no such file, so the settings are not known")
    return validate(kind, load_yaml(path).get("settings"), str(path))
