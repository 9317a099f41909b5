"""Faults of artefacts: in their content, their identity, or the files they were made from."""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from fedstage.errors import FedstageError
from fedstage.plan.results import RESULTS
from fedstage.storage.files import load_json
from fedstage.storage.provenance import SUFFIX, WRITTEN, content_digest
from fedstage.storage.records import by_path, made_by_segment, readable
from fedstage.storage.tables import load_table
from fedstage.storage.tensors import verified_spans
from fedstage.storage.why import fingerprint_now
from fedstage.storage.yaml_files import load_sealed_yaml

Faults = Iterator[tuple[str, str]]
#: The latest record of a job that made a file: its path, its content, the file's digest in it.
Record = tuple[Path, dict[str, Any], str | None]

#: Files without an entry (figures, CSV, Markdown) have no digest except in their job's record.
_READERS: dict[str, Callable[[Path], object]] = {
    ".safetensors": verified_spans,
    ".parquet": load_table,
    ".json": load_json,
    ".yaml": load_sealed_yaml,
}


def faults(
    root: Path, names: Iterable[str], finished: Container[str], other_source: bool = False
) -> Faults:
    """Yield each file below a working folder that is not what a stage wrote, with the fault.

    Content and identity are compared with what a file states in itself. The records of jobs have
    the digests of outputs and inputs. Only files that are `finished` are compared with them, since
    a file that is made again may have other inputs by now. The source of the jobs must be the
    present one, unless `other_source` is accepted: Snakemake detects a change only by its own
    notes, which may be missing after a killed run. Segments of an earlier version recorded no
    digests. Inputs that are gone are not compared, since they may have been temporary.
    """
    read, damaged = readable(sorted((root / RESULTS / "logs").rglob(f"*{SUFFIX}")))
    for path, fault in damaged.items():
        yield path.relative_to(root).as_posix(), fault.removeprefix(f"{path}: ")
    records = list(read.values())
    made = _latest(read)
    digest = cache(lambda name: content_digest(root / name))
    source = cache(lambda record: _source(root, read[record]))  # a job may make many files
    for name in names:
        wrong = _content(root, name)
        if wrong is None and name in finished:
            wrong = _edges(root, name, made, records, digest)
            if wrong is None and name in made and not other_source:
                wrong = source(made[name][0])
        if wrong is not None:
            yield name, wrong


def _content(root: Path, name: str) -> str | None:
    """Return what is wrong with the content of a file, or the identity that it states."""
    reader = _READERS.get(Path(name).suffix)
    try:
        if reader is not None:
            reader(root / name)
    except FedstageError as error:
        return str(error).removeprefix(f"{root / name}: ").partition("; delete it")[0]
    return None


def _edges(
    root: Path,
    name: str,
    made: Mapping[str, Record],
    records: Iterable[dict[str, Any]],
    digest: Callable[[str], str | None],
) -> str | None:
    """Return the fault of a file according to the record of the job that made it."""
    if name not in made:
        return None
    _, job, then = made[name]
    if then is None:
        return None
    if digest(name) != then:
        if any(
            made_by_segment(root, record, name)
            for record in records
            if record["made"] >= job["made"] and WRITTEN not in record
        ):
            return None
        return f"is not what its job wrote: {digest(name)}, was {then}"
    for path, read in by_path(job["inputs"]).items():
        now = digest(path)
        if now is not None and read is not None and now != read:
            return f"was made from another {path}: {read}, is {now} now"
    return None


def _source(root: Path, job: Mapping[str, Any]) -> str | None:
    """Return the fault of a file whose job had another source than it would have now."""
    then = job["source"]
    if then is None:  # a stage that was run by hand
        return None
    now = fingerprint_now(root, job)
    return None if now == then else f"was made by source {then}, not by that of now ({now})"


def _latest(records: Mapping[Path, dict[str, Any]]) -> dict[str, Record]:
    """Return the latest record that names each file among its job's outputs."""
    ordered = sorted(records.items(), key=lambda record: str(record[1]["made"]))
    return {
        name: (path, job, written)
        for path, job in ordered
        for name, written in (by_path(job["outputs"]) | job.get(WRITTEN, {})).items()
    }
