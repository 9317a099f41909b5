"""The time that a run still takes, estimated from the seconds of its jobs and of earlier ones."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import islice
from pathlib import Path
from statistics import fmean

from fedstage.errors import FedstageError
from fedstage.execution.snakemake_log import Progress
from fedstage.plan.results import RESULTS
from fedstage.plan.stages import STAGES
from fedstage.storage.provenance import SUFFIX
from fedstage.storage.records import load_record

_RECORDS = 30  # of a stage, whose seconds are averaged


def seconds_left(
    progress: Progress, now: datetime, seconds: Mapping[str, float | None]
) -> tuple[float, int]:
    """Return the seconds that a run still takes, and the number of jobs of unknown length.

    The estimate assumes as many parallel jobs as so far: a chain of rounds keeps no more cores
    busy.
    """
    begun = [(now - since).total_seconds() for since, _ in progress.running.values()]
    busy = sum(sum(seconds) for seconds in progress.finished.values()) + sum(begun)
    elapsed = (now - progress.started).total_seconds() if progress.started else 0.0
    side_by_side = min(progress.cores, max(1.0, busy / elapsed if elapsed else progress.cores))
    work = sum(count * (seconds.get(rule) or 0.0) for rule, count in progress.left.items())
    unknown = sum(count for rule, count in progress.left.items() if seconds.get(rule) is None)
    return max(0.0, work - sum(begun)) / side_by_side, unknown


def seconds_of(
    progress: Progress, folder: Path, known: dict[str, float | None]
) -> dict[str, float | None]:
    """Return the mean seconds of a job of each rule that has any left.

    They are from this run, or else from the records of earlier jobs, which `known` caches.
    """
    for rule in progress.left:
        if rule not in known:
            known[rule] = _recorded(folder, rule)
    measured = {rule: fmean(taken) for rule, taken in progress.finished.items()}
    return {rule: measured.get(rule, known[rule]) for rule in progress.left}


def _recorded(folder: Path, rule: str) -> float | None:
    """Return the mean seconds of recorded jobs of a rule, whose name begins with its stage."""
    stages = [name for name in STAGES if rule == name or rule.startswith(f"{name}_")]
    if not stages:
        return 0.0  # `all` and descriptions
    seconds = list(_recorded_seconds(folder, max(stages, key=len)))
    return fmean(seconds) if seconds else None


def _recorded_seconds(folder: Path, stage: str) -> Iterator[float]:
    records = (folder / RESULTS / "logs" / stage).rglob(f"*{SUFFIX}")
    for path in islice(records, _RECORDS):
        try:
            yield float(load_record(path)["compute_s"])
        except FedstageError:
            continue  # `fedstage verify` reports it


def in_words(seconds: float) -> str:
    """Write seconds: ``45 s``, ``3 min 05 s``, ``2 h 10 min``."""
    minutes, rest = divmod(round(seconds), 60)
    if not minutes:
        return f"{rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"
