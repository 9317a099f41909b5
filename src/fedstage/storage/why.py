"""``fedstage why FILE``: the settings, files and source that an artefact was made from."""

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from fedstage.errors import FedstageError
from fedstage.plan.data_files import dataset, features, partition
from fedstage.plan.graph import Job, listed
from fedstage.plan.results import RESULTS
from fedstage.plan.source import changed_files, digest_now
from fedstage.settings.validation import as_typed
from fedstage.storage.files import load_json
from fedstage.storage.provenance import SUFFIX, content_digest
from fedstage.storage.raw_files import recorded
from fedstage.storage.records import (
    Artefact,
    by_path,
    files_made,
    find_artefact,
    find_round_job,
    readable,
)
from fedstage.storage.tables import load_table
from fedstage.storage.tensors import payload_size
from fedstage.storage.yaml_files import load_yaml

UNCHANGED = ", unchanged"
#: How many unchanged files of an option are listed.
SHOWN = 8


def why(file: Path) -> str:
    """Describe where a file below `results`, there or gone, came from.

    FedstageError if there is no record.
    """
    artefact = find_artefact(file)
    lines = [
        artefact.name,
        *_table(facts_of(artefact)),
        *_section("settings", settings_of(artefact)),
        *_section("place", artefact.job["options"]),
        "inputs",
        *files_read(artefact),
        *_raw_files(artefact),
        *_damaged(artefact),
        *_remedy(artefact),
    ]
    return "\n".join(lines)


def changes_of_source(job: Mapping[str, Any]) -> list[str]:
    """Return the files of a job's source, as its record has it, whose code has changed since."""
    then = job["source"] if isinstance(job["source"], dict) else {}
    return changed_files(then, {part: digest_now(part) for part in then})


def facts_of(artefact: Artefact) -> Iterator[tuple[str, str]]:
    """Yield facts about the job from its record, and what has changed since: names and texts."""
    job = artefact.job
    own = _job_of_segment(artefact)
    within = f", for {own.stage.name}" if own else ""
    yield "made", f"{job['made']} by stage {job['stage']}{within}"
    seconds = f"{job['compute_s']} s, {job['startup_s']} s start-up"
    on_gpu = f", {job['peak_gpu_memory_mb']} MB on the GPU" if "peak_gpu_memory_mb" in job else ""
    yield "took", f"{seconds}, {job['peak_memory_mb']} MB{on_gpu}"
    yield "content", _compare(artefact, artefact.name, by_path(job["outputs"]))
    yield "source", _source(artefact)
    yield "versions", ", ".join(f"{name} {number}" for name, number in job["versions"].items())
    yield "record", str(artefact.record)
    yield from (("recipe", str(Path(recipe).parent)) for recipe in job["inputs"].get("recipe", ()))


def _source(artefact: Artefact) -> str:
    """Compare the source of then with the source of now."""
    if not isinstance(artefact.job["source"], dict):
        return "not recorded: the job was run by hand, or by an earlier version"
    changed = changes_of_source(artefact.job)
    return f"changed since: {', '.join(changed)}" if changed else "the same now"


def _compare(artefact: Artefact, name: str, recorded: Mapping[str, str | None]) -> str:
    """Return the digest of a file, compared with the recorded one."""
    return _change(content_digest(artefact.root / name), recorded.get(name))


def _change(now: str | None, then: str | None) -> str:
    if then is None:
        return now or "gone"
    return f"{now}{UNCHANGED}" if now == then else f"{now or 'gone'}, was {then}"


def settings_of(artefact: Artefact) -> Mapping[str, Any]:
    """Return the settings in the job's recipe, if it has one that is still there."""
    for recipe in artefact.job["inputs"].get("recipe", ()):
        path = artefact.root / recipe
        return load_yaml(path)["settings"] if path.is_file() else {}
    return {}


def files_read(artefact: Artefact) -> Iterator[str]:
    """Yield the input files of each option; of unchanged files, only the first `SHOWN`."""
    recorded = by_path(artefact.job["inputs"])
    for option, files in _read(artefact).items():
        yield f"  {option}"
        yield from _some([(_compare(artefact, file, recorded), file) for file in files])


def _raw_files(artefact: Artefact) -> Iterator[str]:
    """Yield the raw files of the data sets that the file is part of, or was made from.

    Records have the ones of then; the last plan found the ones of now.
    """
    inputs = [file for files in _read(artefact).values() for file in files]
    found = (re.match(rf"{RESULTS}/(data|partitions)/([^/]+)/", file)
             for file in (artefact.name, *inputs))  # fmt: skip
    for kind, name in dict.fromkeys(match.groups() for match in found if match):
        stages = (dataset, features) if kind == "data" else (partition,)
        logs = [
            artefact.root / RESULTS / "logs" / stage.name / f"{name}{SUFFIX}" for stage in stages
        ]
        then = next(filter(None, map(recorded, logs)), None)
        planned = artefact.root / RESULTS / "raw" / f"{name}.json"
        if then and planned.is_file():
            now = load_json(planned)
            yield f"raw files of {name}"
            yield from _some(
                [(_change(now.get(one), then.get(one)), one) for one in {**then, **now}]
            )


def _damaged(artefact: Artefact) -> list[str]:
    """Return what is wrong with records that could not be read."""
    told = [f"  {fault}" for fault in artefact.damaged]
    return ["damaged records, left out", *told] if told else []


def _remedy(artefact: Artefact) -> list[str]:
    """Return the command that makes a missing file again."""
    if (artefact.root / artefact.name).is_file():
        return []
    elsewhere = artefact.root.resolve() != Path.cwd()
    place = f"cd {shlex.quote(str(artefact.root))} && " if elsewhere else ""
    command = as_typed("snakemake", "--cores", "all", artefact.name)
    return ["to make it again", f"  {place}{command}"]


def _some(rows: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield one line per file; of unchanged files, only the first `SHOWN`."""
    hidden = set([row for row in rows if row[0].endswith(UNCHANGED)][SHOWN:])
    yield from _table((row for row in rows if row not in hidden), indent=4)
    if hidden:
        yield f"    and {len(hidden)} more{UNCHANGED}"


def _read(artefact: Artefact) -> Mapping[str, Iterable[str]]:
    """Return the job's inputs by option; in a segment, inputs of the stage that made the file."""
    own = _job_of_segment(artefact)
    inputs: Mapping[str, Any] = own.inputs if own else artefact.job["inputs"]
    return {option: list(listed(files)) for option, files in inputs.items() if files}


def _job_of_segment(artefact: Artefact) -> Job | None:
    """Return the job of a round that a segment ran to make a file, None if no segment made it."""
    in_segment = artefact.job["stage"] in ("segment", "logits_segment")
    return find_round_job(artefact.root, artefact.name) if in_segment else None


def _section(title: str, content: Mapping[str, Any]) -> list[str]:
    if not content:
        return []
    text = yaml.safe_dump(dict(content), sort_keys=False)
    return [title, *(f"  {line}" for line in text.splitlines())]


def _table(rows: Iterable[tuple[str, str]], indent: int = 2) -> list[str]:
    """Align the second column."""
    kept = list(rows)
    width = max((len(name) for name, _ in kept), default=0)
    return [f"{' ' * indent}{name:{width}}  {value}" for name, value in kept]


# --- verify ---------------------------------------------------------------------------------------

#: Files of other kinds have no digest except in their job's record.
_READERS: Mapping[str, Callable[[Path], object]] = {
    ".safetensors": payload_size,
    ".parquet": load_table,
}


def verify() -> str:
    """Return how many files match the records of their jobs; print what is wrong with others.

    A file is compared with what it states in itself and with the latest record that names it. The
    inputs of that record must have the recorded digests, and its source must be the present one.
    Files that are gone are not compared, since they may have been temporary.

    Raises
    ------
    FedstageError
        If a file or a record is wrong: the message has the command that makes the files again.
    """
    records, damaged = readable(sorted(Path(RESULTS, "logs").rglob(f"*{SUFFIX}")))
    ordered = sorted(records, key=lambda path: str(records[path]["made"]))
    latest = {name: path for path in ordered for name in files_made(records[path])}
    there = {name: path for name, path in latest.items() if Path(name).is_file()}
    digest = cache(lambda name: content_digest(Path(name)))  # many jobs may read a file
    for fault in damaged.values():
        print(fault)
    wrong = []
    for name, path in there.items():
        try:
            _check(name, records[path], digest)
        except FedstageError as error:
            wrong.append(name)
            print(f"{name}: {str(error).removeprefix(f'{name}: ')}", flush=True)
    if wrong or damaged:
        again = as_typed("snakemake", "--cores", "all", "--force", *wrong)
        count = f"{len(wrong)} of {len(there)} files and {len(damaged)} records are wrong"
        raise FedstageError(f"{count}; to make these again: {again}" if wrong else count)
    return f"{len(there)} files match their records and inputs"


def _check(name: str, job: Mapping[str, Any], digest: Callable[[str], str | None]) -> None:
    """Raise FedstageError if a file is not what the record of its job says."""
    _READERS.get(Path(name).suffix, Path.stat)(Path(name))
    if digest(name) != (then := files_made(job)[name]):
        raise FedstageError(f"is not what its job wrote: {digest(name)}, was {then}")
    for path, then in by_path(job["inputs"]).items():
        if then is not None and digest(path) not in (then, None):
            raise FedstageError(f"was made from another {path}: {then}, is {digest(path)} now")
    if changed := changes_of_source(job):
        raise FedstageError(f"was made by another source: {', '.join(changed)} has changed since")
