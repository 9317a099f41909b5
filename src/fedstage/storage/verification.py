"""``fedstage verify``: whether files are what their jobs wrote, made of what is there now."""

from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

from fedstage.errors import FedstageError
from fedstage.plan.results import RESULTS
from fedstage.settings.validation import as_typed
from fedstage.storage.provenance import SUFFIX, content_digest
from fedstage.storage.records import by_path, files_made, readable
from fedstage.storage.tables import load_table
from fedstage.storage.tensors import payload_size
from fedstage.storage.why import changes_of_source

_Digest = Callable[[str], str | None]
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
    digest = cache(lambda name: content_digest(Path(name)))
    # Many files may be of one job.
    source = cache(lambda path: changes_of_source(records[path]))
    for fault in damaged.values():
        print(fault)
    wrong = []
    for name, path in there.items():
        try:
            _check(name, records[path], digest, partial(source, path))
        except FedstageError as error:
            wrong.append(name)
            print(f"{name}: {str(error).removeprefix(f'{name}: ')}", flush=True)
    if wrong or damaged:
        again = as_typed("snakemake", "--cores", "all", "--force", *wrong)
        count = f"{len(wrong)} of {len(there)} files and {len(damaged)} records are wrong"
        raise FedstageError(f"{count}; to make these again: {again}" if wrong else count)
    return f"{len(there)} files match their records and inputs"


def _check(name: str, job: Mapping[str, Any], digest: _Digest, source: Callable[[], Any]) -> None:
    """Raise FedstageError if a file is not what the record of its job says."""
    _READERS.get(Path(name).suffix, Path.stat)(Path(name))
    if digest(name) != (then := files_made(job)[name]):
        raise FedstageError(f"is not what its job wrote: {digest(name)}, was {then}")
    for path, then in by_path(job["inputs"]).items():
        if then is not None and digest(path) not in (then, None):
            raise FedstageError(f"was made from another {path}: {then}, is {digest(path)} now")
    if changed := source():
        raise FedstageError(f"was made by another source: {', '.join(changed)} has changed since")
