"""The files that stages of results read, listed by their runs file instead of an option."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from fedstage.storage.files import load_json

Runs = list[dict[str, Any]]

#: Stages that read scores in a file made of the metrics.
_OF_SCORES = ("tables", "figures", "comparison", "sweep", "claims")


def listed_files(stage: str, runs_files: Iterable[Path]) -> dict[str, list[str]]:
    """Return the files of runs that a stage of results reads, by kind; runs files may be gone."""
    listed = [path for path in runs_files if path.is_file()]
    runs = [run for path in listed for run in load_json(path)["runs"]]
    measured = {"retention_summary": "retention", "clients": "clients"}
    if key := measured.get(stage):
        return {"measures": [path for run in runs for path in run[key]]}
    found = {}
    if stage not in _OF_SCORES:
        found = {
            "metrics": _named(runs, "metrics", "over_rounds"),
            "chosen": _named(runs, "chosen"),
        }
    if stage == "figures":
        found |= {"partitions": _named(runs, "partition"), "infos": _named(runs, "info")}
    return {kind: files for kind, files in found.items() if files}


def _named(runs: Runs, *keys: str) -> list[str]:
    """Return the files under some keys of runs, each once."""
    return list(dict.fromkeys(_values(runs, keys)))


def _values(runs: Runs, keys: tuple[str, ...]) -> Iterator[str]:
    yield from (run[key] for key in keys for run in runs if run.get(key))
