"""Finding the record of the job that made a file."""

import glob
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from fedstage.errors import FedstageError
from fedstage.plan.graph import Job, find_job, recipe_file
from fedstage.plan.results import BY_METHOD, RESULTS
from fedstage.plan.stages import OF_ROUNDS
from fedstage.plan.training_folder import FOLDER
from fedstage.settings.recipes import Recipe
from fedstage.settings.validation import validate_restricted
from fedstage.storage.files import load_json
from fedstage.storage.provenance import ERROR, SUFFIX, WRITTEN
from fedstage.storage.yaml_files import load_yaml

#: The digests of files, by option and path.
Digests = dict[str, dict[str, str | None]]


class Record(BaseModel):
    """What every record has, as `fedstage.execution.jobs` writes it, among other keys."""

    stage: str
    made: str
    options: dict[str, Any]
    inputs: Digests
    outputs: Digests
    source: dict[str, str] | str | None  # a text in records of earlier versions
    versions: dict[str, str]
    startup_s: float
    compute_s: float
    peak_memory_mb: float


@dataclass(frozen=True)
class Artefact:
    """A file, and the record of the job that made it."""

    root: Path  # the working folder, which has a folder `results`
    name: str  # path of the file, relative to `root`
    record: Path  # path of the record, relative to `root`
    job: dict[str, Any]  # the record, as `fedstage.storage.provenance` writes it
    damaged: list[str]  # what is wrong with records that may be about this file


def find_artefact(path: Path) -> Artefact:
    """Return a file, which may be gone, with the latest record of a job that made it.

    Raises
    ------
    FedstageError
        If there is no such record.
    """
    root, name = _split(path)
    if (root / name).is_dir():
        raise FedstageError(f"{path}: is a folder; name a file in it")
    candidates, damaged = readable(record_files(root, Path(name).parts[:3][-1]))
    found = [(record, job) for record, job in candidates.items() if name in files_made(job)]
    if not found:
        what = "no record" if (root / name).is_file() else "no such file, and no record"
        cause = "the logs were deleted (fedstage clean does so), or no stage made the file"
        raise FedstageError(
            f"{path}: {what} below {RESULTS}/logs of a job that made it: "
            + ("; ".join(damaged.values()) or cause)
        )
    record, job = max(found, key=lambda pair: str(pair[1]["made"]))
    return Artefact(root, name, record.relative_to(root), job, [*damaged.values()])


def _split(path: Path) -> tuple[Path, str]:
    """Return the working folder and the path below it; only links by method are followed."""
    whole = _in_its_run(path.absolute())
    for folder in whole.parents:
        if folder.name == RESULTS and (folder / "logs").is_dir():
            return folder.parent, whole.relative_to(folder.parent).as_posix()
    raise FedstageError(f"{path}: must be a file below a folder {RESULTS} that has logs")


def _in_its_run(path: Path) -> Path:
    """Return the path in its run's folder of a file that is named by a link below `BY_METHOD`."""
    for place in path.parents:
        if place.is_symlink() and f"/{BY_METHOD}/" in place.as_posix():
            run = os.path.normpath(place.parent / place.readlink())
            return Path(run) / path.relative_to(place)
    return path


def records_of(root: Path, *identities: str) -> list[dict[str, Any]]:
    """Return the records below a working folder of identities, such as recipe ids, oldest first.

    Raises
    ------
    FedstageError
        If one is damaged.
    """
    paths = (path for one in dict.fromkeys(identities) for path in record_files(root, one))
    records = filter(None, map(load_record, paths))
    return sorted(records, key=lambda record: str(record["made"]))


def load_record(path: Path) -> dict[str, Any]:
    """Read the record of a job, empty if it failed, or if ``snakemake --touch`` has made the file.

    FedstageError if it is damaged.
    """
    if path.is_file() and not path.stat().st_size:
        return {}
    job = load_json(path)
    if ERROR in job:
        return {}
    try:
        Record.model_validate(job)
    except ValidationError as error:
        key = str(error.errors()[0]["loc"][0])
        fault = f"{key} = {job.get(key)!r}: altered, not a job's record"
        raise FedstageError(f"{path}: {fault}") from None
    return job


def readable(paths: Iterable[Path]) -> tuple[dict[Path, dict[str, Any]], dict[Path, str]]:
    """Return the records that can be read, and what is wrong with the others, by their paths."""
    records, damaged = {}, {}
    for path in paths:
        try:
            if record := load_record(path):
                records[path] = record
        except FedstageError as error:
            damaged[path] = str(error)
    return records, damaged


def record_files(root: Path, identity: str) -> Iterator[Path]:
    """Yield the files of records of an identity: it is in their names, or in their folder's."""
    logs, name = root / RESULTS / "logs", f"*{glob.escape(identity)}*"
    yield from logs.glob(f"*/{name}{SUFFIX}")
    yield from logs.glob(f"*/{name}/**/*{SUFFIX}")


def find_round_job(root: Path, name: str) -> Job | None:
    """Return the job of a round that makes a file below a working folder, None for other files."""
    folder = "/".join(name.split("/")[:3])
    if not folder.startswith(f"{RESULTS}/{FOLDER.name}/") or not (root / folder).is_dir():
        return None
    path = root / recipe_file(folder)
    recipe = validate_restricted(Recipe, load_yaml(path).get("settings"), str(path))
    return find_job(OF_ROUNDS, recipe, name)


def by_path(grouped: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the files of all options with their digests."""
    return {path: digest for files in grouped.values() for path, digest in files.items()}


def files_made(job: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the digests of the files that a job wrote, including a segment's."""
    return {**by_path(job["outputs"]), **job.get(WRITTEN, {})}
