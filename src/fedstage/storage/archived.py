"""Files that came in an archive, without the files that they were made from.

Snakemake looks at all jobs behind a target. Once one of them runs, such as the job of the data set
when a seed is added, every job that depends on it runs, too. So a job whose files came in an
archive is given no inputs, as long as these files exist and their source is the present one.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from fedstage.errors import FedstageError
from fedstage.plan.graph import Job
from fedstage.plan.results import RESULTS
from fedstage.storage.files import load_json
from fedstage.storage.records import by_path

#: The file that lists an archive's contents. Once it is deleted, missing files are made again.
LIST = f"{RESULTS}/archived.json"


def archived_sources(root: Path = Path()) -> dict[str, str]:
    """Return the files below a working folder that came in an archive, with their source.

    Raises
    ------
    FedstageError
        If the list is damaged.
    """
    path = root / LIST
    if not path.is_file():
        return {}
    sources = load_json(path).get("sources")
    if not isinstance(sources, dict):
        raise FedstageError(f"{path}: sources = {sources!r}: must map files to their source")
    return sources


def recorded_sources(records: Iterable[Mapping[str, Any]], there: Iterable[str]) -> dict[str, str]:
    """Return the files of jobs that have all their files, with their source.

    If a file has several records, the latest counts.
    """
    known, found = set(there), dict[str, str]()
    for record in sorted(records, key=lambda record: str(record["made"])):
        files = by_path(record["outputs"])
        if record.get("source") and known.issuperset(files):
            found |= dict.fromkeys(files, str(record["source"]))
    return found


def inputs_of(
    job: Job, sources: Mapping[str, str], fingerprint: Callable[[Job], str]
) -> Mapping[str, Any]:
    """Return the inputs of a job for its rule: none if its files came in an archive."""
    files = job.files.values()
    if sources and sources.keys() >= set(files) and all(Path(path).is_file() for path in files):
        source = fingerprint(job)
        if all(sources[path] == source for path in files):
            return {}
    return job.inputs
