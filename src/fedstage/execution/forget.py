"""``fedstage forget``: delete what still contains clients that an aggregator has forgotten."""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedstage.errors import FedstageError
from fedstage.experiments.catalogue import Catalogue, resolve_all
from fedstage.experiments.library import experiment_names
from fedstage.experiments.unlearning import forgets, is_among, traces_of
from fedstage.plan.results import RESULTS
from fedstage.plan.runs import split_target
from fedstage.plan.stages import RECIPES
from fedstage.settings.config_file import Config
from fedstage.settings.validation import validate
from fedstage.storage.contents import content_of
from fedstage.storage.derived import Records, made_from, stored_recipes, stored_records
from fedstage.storage.files import load_json, save_json
from fedstage.storage.provenance import SUFFIX, content_digest
from fedstage.storage.records import by_path
from fedstage.storage.strays import remove_strays, written_for
from fedstage.storage.yaml_files import load_yaml

Traces = Sequence[Mapping[str, Any]]


def forget(target: str, config: Path, workflow: Path, delete: bool) -> str:
    """Return what is deleted, or would be; after deleting, check whether anything is left.

    Raises
    ------
    FedstageError
        If no run of the target forgets a client, or if something is left.
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
        return "\n".join([*rows, f"{len(rows)} files; --delete deletes them"])
    report = root / RESULTS / "forgetting" / f"{'/'.join(place)}.deleted.json"
    return _delete(root, report, traces, found, records, clients)


def _delete(
    root: Path,
    report: Path,
    traces: Traces,
    found: Mapping[str, str],
    records: Records,
    clients: Sequence[int],
) -> str:
    """Delete files, check whether anything is left, write the report, and return the message."""
    before: dict[str, Any] = {"clients": clients, "removed": [], "logs": [], "left": {}}
    if report.exists():
        before = load_json(report)
    strays = remove_strays(sorted((root / RESULTS).rglob(".*.tmp")))
    swept = dict.fromkeys((str(path.relative_to(root)) for path in strays), "of a killed job")
    digests = _digests(root, found, records)
    removed = [
        {"file": path, "contains": contains, "digest": digests.get(path)}
        for path, contains in {**found, **swept}.items()
    ]
    # Includes what was removed before: by these digests copies are found, now and later. They are
    # written first, because a killed command may have deleted the records.
    known = [*(row for row in before["removed"] if row not in removed), *removed]
    content = before | {"clients": clients, "removed": known}
    if removed or not report.exists():
        save_json(report, content)
    logs = delete_files(root, found, records)
    gone = {row["digest"] for row in known} - {None}
    rest = what_is_left(root, traces, {row["file"] for row in known}, gone, clients)
    if logs or rest.left != before["left"]:
        logs_of_all = list(dict.fromkeys((*before["logs"], *logs)))
        save_json(report, content | {"logs": logs_of_all, "left": rest.left})
    if rest.left:
        raise FedstageError("\n".join(f"{path}: left, {why}" for path, why in rest.left.items()))
    closed = [f"{path}: an archive, or damaged: not looked into" for path in rest.closed]
    return "\n".join([*closed, _deleted(len(removed), len(logs), report)])


def _deleted(files: int, logs: int, report: Path) -> str:
    return (
        f"{files} files and {logs} logs deleted; no file below {RESULTS} has the content of one of "
        "these, as it was or in gzip, or was made from one by the records. Parts of them, other "
        f"archives, files outside {RESULTS}, and the raw data may remain: {report}"
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

    They may have been deleted already, for instance by a command that was killed. A file that never
    existed is in no record.
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
    """Delete files, then the logs and records of the jobs that made them; return these.

    The record of a job that has also made other files stays with these. Broken links, and logs of
    failed jobs, which have no record, are deleted as well.
    """
    for path in found:
        (root / path).unlink(missing_ok=True)
    folders = sorted({parent for path in found for parent in Path(path).parents}, reverse=True)
    for folder in folders:
        _remove_empty(root, root / folder)
    _remove_links(root, {*found, *map(str, folders)})
    logs = _failed_logs(root, found, folders, records)
    for record, job in records.items():
        made = by_path(job["outputs"])
        if not (found.keys() & made.keys() or _of_deleted_recipe(job, found)):
            continue
        if found.keys() >= made.keys():
            logs.append(record)
        logs.append(_log_of(record))
    for log in logs:
        log.unlink(missing_ok=True)
    return [str(log.relative_to(root)) for log in logs]


def _log_of(record: Path) -> Path:
    return record.with_name(record.name.removesuffix(SUFFIX) + ".log")


def _remove_links(root: Path, gone: Collection[str]) -> None:
    """Remove the links to deleted files and folders, and folders of links that are left empty."""
    for place, folders, files in os.walk(root / RESULTS, topdown=False):
        links = [path for name in (*folders, *files) if (path := Path(place, name)).is_symlink()]
        for link in links:
            target = os.path.relpath(os.path.join(place, link.readlink()), root)
            if target in gone and not link.exists():
                link.unlink()
                for folder in link.parents:
                    _remove_empty(root, folder)


def _remove_empty(root: Path, folder: Path) -> None:
    """Remove an empty folder below results."""
    if root / RESULTS in folder.parents and folder.is_dir() and not os.listdir(folder):
        folder.rmdir()


def _failed_logs(
    root: Path, found: Collection[str], folders: Iterable[Path], records: Records
) -> list[Path]:
    """Return the logs without a record that have the path of a deleted file, or of a folder.

    The path of a log is the name of the stage, for a recipe followed by the recipe's kind, and then
    the path of a file that its job makes, or of a folder above.
    """
    known = {_log_of(record) for record in records}
    files = {Path(*Path(path).with_suffix("").parts[2:]) for path in found}
    recipes = {
        Path(*folder.parts[2:])
        for folder in folders
        if len(folder.parts) == 3 and folder.parts[1] in RECIPES and not (root / folder).is_dir()
    }
    named = files | {parent for path in files for parent in path.parents if parent.parts}
    logs = []
    for log in sorted((root / RESULTS / "logs").rglob("*.log")):
        parts = log.with_name(log.name.removesuffix(".log")).relative_to(root).parts[3:]
        path = Path(*parts[1:] if parts[:1] and parts[0] in RECIPES else parts)
        if log not in known and (path in named or recipes & {path, *path.parents}):
            logs.append(log)
    return logs


def _of_deleted_recipe(job: Mapping[str, Any], found: Mapping[str, str]) -> bool:
    """Whether a job has named no outputs, as segments do, and its recipe is deleted."""
    recipes = job["inputs"].get("recipe", {})
    return not job["outputs"] and bool(recipes) and all(path in found for path in recipes)


@dataclass
class Rest:
    """What is still there after deleting."""

    left: dict[str, str] = field(default_factory=dict)  # files that should be gone, with the reason
    closed: list[str] = field(default_factory=list)  # files in which copies cannot be detected


def what_is_left(
    root: Path,
    traces: Traces,
    deleted: Collection[str],
    digests: Collection[str],
    clients: Sequence[int],
) -> Rest:
    """Return what should not be there any more, according to all records of `deleted` files.

    Files and records are read again. A file is left if a trace names it, if according to the record
    of its job it was made from deleted files, or if it is being written under such a name. A copy
    is left, too: a file under any name that has the content of a deleted one and that no other job
    has made.
    """
    records = stored_records(root)
    made = {path for job in records.values() for path in by_path(job["outputs"])}
    derived = made_from(deleted, records, clients)
    named = _named(_files(root), traces)
    rest = Rest()
    for path in _files(root):
        target = written_for(Path(path))
        if path in named:
            rest.left[path] = "the table names it"
        elif path in derived:
            rest.left[path] = "made from a deleted file"
        elif target is not None and (str(target) in deleted or _named([str(target)], traces)):
            rest.left[path] = "a process is writing a deleted file"
        elif path not in made:
            content = content_of(root / path)
            if content.digests.intersection(digests):
                rest.left[path] = "a copy of a deleted file"
            elif not content.whole:
                rest.closed.append(path)
    return rest


def _digests(root: Path, found: Mapping[str, str], records: Records) -> dict[str, str | None]:
    """Return the digest of each file, from its record if the file is gone."""
    recorded = {
        path: digest for job in records.values() for path, digest in by_path(job["outputs"]).items()
    }
    return {path: content_digest(root / path) or recorded.get(path) for path in found}


def _files(root: Path) -> Iterator[str]:
    """Yield all files of results, relative to the working folder."""
    for path in sorted((root / RESULTS).rglob("*")):
        if path.is_file():
            yield path.relative_to(root).as_posix()
