"""``fedstage forget``: delete what still contains clients that an aggregator has forgotten."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fedstage.errors import FedstageError
from fedstage.experiments.catalogue import Catalogue, resolve_all
from fedstage.experiments.library import experiment_names
from fedstage.experiments.unlearning import forgets, is_among, traces_of
from fedstage.plan.results import RESULTS
from fedstage.plan.runs import split_target
from fedstage.settings.config_file import Config
from fedstage.settings.validation import validate
from fedstage.storage.derived import Records, made_from, stored_recipes, stored_records
from fedstage.storage.files import save_json
from fedstage.storage.provenance import SUFFIX, content_digest
from fedstage.storage.records import by_path
from fedstage.storage.yaml_files import load_yaml

Traces = Sequence[Mapping[str, Any]]


def forget(target: str, config: Path, workflow: Path, delete: bool) -> str:
    """Return what is deleted, or would be; after deleting, look whether anything is left.

    Raises
    ------
    FedstageError
        If no run of the target forgets a client, or something is left.
    """
    place = split_target(target)
    catalogue = _catalogue_of(place[0], config, workflow)
    if catalogue is None or place not in catalogue.runs:
        raise FedstageError(f"{target}: no such experiment and scale")
    if not forgets(catalogue, *place):
        raise FedstageError(f"{target}: no run forgets a client")
    root = Path()
    traces = traces_of(catalogue, *place, stored_recipes(root))
    clients = sorted({int(trace["client"]) for trace in traces})
    records = stored_records(root)
    found = with_traces(root, traces, records, clients)
    if not delete:
        rows = [f"{path}: {contains}" for path, contains in found.items()]
        return "\n".join([*rows, f"{len(rows)} files; fedstage forget --delete deletes them"])
    digests = _digests(root, found, records)
    logs = delete_files(root, found, records)
    left = what_is_left(root, traces, digests, clients)
    report = root / RESULTS / "forgetting" / f"{'/'.join(place)}.deleted.json"
    removed = [{"file": path, "contains": found[path], "digest": digests[path]} for path in found]
    if removed or left or not report.exists():
        save_json(report, {"clients": clients, "removed": removed, "logs": logs, "left": left})
    if left:
        raise FedstageError("\n".join(f"{path}: left, {why}" for path, why in left.items()))
    return (
        f"{len(found)} files and {len(logs)} logs deleted; no file below {RESULTS} has the content "
        f"of one of these, or was made from one: {report}"
    )


def _catalogue_of(experiment: str, config: Path, workflow: Path) -> Catalogue | None:
    """Return the catalogue of an experiment alone, None if there is no such experiment."""
    checked = validate(Config, load_yaml(config), str(config))
    if experiment not in experiment_names(checked, workflow):
        return None
    own = checked.model_copy(update={"targets": [f"{experiment}/*"]})
    return resolve_all(own, workflow, [experiment])


def with_traces(
    root: Path, traces: Traces, records: Records, clients: Sequence[int]
) -> dict[str, str]:
    """Return the files that the traces name, and those made from them, with what they contain.

    They may have been deleted already, as by a command that was killed; a file that was never there
    is in no record.
    """
    known = {*_files(root), *(path for job in records.values() for path in by_path(job["outputs"]))}
    named = _named(known, traces)
    derived = made_from(named, records, clients)
    return dict(sorted((dict.fromkeys(derived, "made from one of these") | named).items()))


def _named(files: Iterable[str], traces: Traces) -> dict[str, str]:
    """Return the files that traces name, with what they contain."""
    contains = {trace["files"]: trace["contains"] for trace in reversed(traces)}
    patterns = [files for files in contains if "*" in files]
    named = {}
    for path in files:
        names = (path, *map(str, Path(path).parents))
        exact = next((name for name in names if name in contains), None)
        pattern = exact or next((pattern for pattern in patterns if is_among(path, pattern)), None)
        if pattern is not None:
            named[path] = contains[pattern]
    return named


def delete_files(root: Path, found: Mapping[str, str], records: Records) -> list[str]:
    """Delete files, then the logs and records of the jobs that made them; return these."""
    for path in found:
        (root / path).unlink(missing_ok=True)
    logs = []
    for record, job in records.items():
        made = by_path(job["outputs"])
        if (made and found.keys() >= made.keys()) or _of_deleted_recipe(job, found):
            for log in (record, record.with_name(record.name.removesuffix(SUFFIX) + ".log")):
                log.unlink(missing_ok=True)
                logs.append(str(log.relative_to(root)))
    for folder in sorted({parent for path in found for parent in Path(path).parents}, reverse=True):
        if len(folder.parts) > 1 and (root / folder).is_dir() and not os.listdir(root / folder):
            (root / folder).rmdir()
    return logs


def _of_deleted_recipe(job: Mapping[str, Any], found: Mapping[str, str]) -> bool:
    """Whether a job has named no outputs, as segments do, and its recipe is deleted."""
    recipes = job["inputs"].get("recipe", {})
    return not job["outputs"] and bool(recipes) and all(path in found for path in recipes)


def what_is_left(
    root: Path, traces: Traces, digests: Mapping[str, str | None], clients: Sequence[int]
) -> dict[str, str]:
    """Return the files that should not be there any more, by all that is known, with the reason.

    Files and records are read again: a file is left if a trace names it, if by the record of its
    job it was made from what was deleted, or if it has the content of what was deleted and
    no other job has made it, as a copy has.
    """
    records = stored_records(root)
    made = {path for job in records.values() for path in by_path(job["outputs"])}
    derived = made_from(digests, records, clients)
    gone = {digest for digest in digests.values() if digest}
    named = _named(_files(root), traces)
    left = {}
    for path in _files(root):
        if path in named:
            left[path] = "the table names it"
        elif path in derived:
            left[path] = "made from a deleted file"
        elif path not in made and content_digest(root / path) in gone:
            left[path] = "a copy of a deleted file"
    return left


def _digests(root: Path, found: Mapping[str, str], records: Records) -> dict[str, str | None]:
    """Return the digest of each file, by its record if it is not there any more."""
    recorded = {
        path: digest for job in records.values() for path, digest in by_path(job["outputs"]).items()
    }
    return {path: content_digest(root / path) or recorded.get(path) for path in found}


def _files(root: Path) -> Iterator[str]:
    """Yield all files of results, relative to the working folder, but no logs."""
    for path in sorted((root / RESULTS).rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.is_file() and not name.startswith(f"{RESULTS}/logs/"):
            yield name
