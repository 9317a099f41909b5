"""The progress of a run, followed by Snakemake's messages, and the time that it still takes."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from logging import LogRecord
from pathlib import Path
from statistics import fmean
from typing import Any

from snakemake_interface_logger_plugins.common import LogEvent

from fedstage.errors import FedstageError
from fedstage.plan.results import RESULTS
from fedstage.plan.stages import STAGES
from fedstage.storage.provenance import SUFFIX
from fedstage.storage.records import load_record

_RECORDS = 30  # of a stage, whose seconds are averaged
_READABLE = ((".md", ".png"), (".html",), (".csv",))  # the first that a job makes is shown

#: Running jobs: rule and outputs, by their numbers.
Jobs = dict[int, tuple[str, list[str]]]


@dataclass
class Progress:
    """Jobs of a run: planned by rule, running by number, finished with their seconds by rule."""

    cores: int = 1
    started: datetime | None = None
    planned: dict[str, int] = field(default_factory=dict)
    running: dict[int, tuple[datetime, str]] = field(default_factory=dict)
    finished: dict[str, list[float]] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    @property
    def done(self) -> int:
        """The number of finished jobs."""
        return sum(map(len, self.finished.values()))

    @property
    def left(self) -> Mapping[str, int]:
        """How many jobs of each rule have not finished, in the order of the plan."""
        counts = {
            rule: count - len(self.finished.get(rule, ())) for rule, count in self.planned.items()
        }
        return {rule: count for rule, count in counts.items() if count > 0}


def take_in(progress: Progress, jobs: Jobs, record: LogRecord, now: datetime) -> list[str]:
    """Update the progress and the running jobs by a message; return results that are finished."""
    about: Any = record.__dict__
    match about.get("event"):
        case LogEvent.RUN_INFO:
            stats = about["stats"].items()
            progress.planned = {rule: count for rule, count in stats if rule != "total"}
        case LogEvent.RESOURCES_INFO:
            progress.cores = about.get("cores", progress.cores)
        case LogEvent.JOB_INFO:
            progress.started = progress.started or now
            message = about["rule_msg"] or about["rule_name"]
            progress.running[about["jobid"]] = now, message
            jobs[about["jobid"]] = about["rule_name"], about["output"]
        case LogEvent.JOB_FINISHED:
            begun, _ = progress.running.pop(about["job_id"], (now, ""))
            rule, outputs = jobs.pop(about["job_id"], ("", []))
            progress.finished.setdefault(rule, []).append((now - begun).total_seconds())
            return readable(outputs)
        case LogEvent.JOB_ERROR:
            progress.running.pop(about["jobid"], None)
            progress.failed.append(about["rule_name"])
        case LogEvent.GROUP_ERROR:
            for job in about["job_error_info"]:
                progress.running.pop(job["jobid"], None)
                progress.failed.append(job["rule_name"])
    return []


def readable(outputs: Iterable[str]) -> list[str]:
    """Return the files of a job that users read: tables and figures, each in one format."""
    for suffixes in _READABLE:
        if found := [path for path in outputs if path.endswith(suffixes)]:
            return found
    return []


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
            if record := load_record(path):
                yield float(record["compute_s"])
        except FedstageError:
            continue  # `fedstage verify` reports it


def describe_shortly(
    progress: Progress, now: datetime, seconds: Mapping[str, float | None], note: str
) -> str:
    """Return one line: jobs, time left, what runs, how training goes. `seconds` are per rule."""
    if not progress.planned:
        return "planning"
    failed = [f"{len(progress.failed)} failed"] if progress.failed else []
    running = [message.partition(" (")[0] for _, message in progress.running.values()]
    more = f", and {len(running) - 1} more" if len(running) > 1 else ""
    left, unknown = seconds_left(progress, now, seconds)
    about = "at least" if unknown else "about"
    time = f"{about} {in_words(left)} left" if round(left) or not unknown else ""
    now_running = [f"{message}{more}" for message in running[:1]]
    return "; ".join(filter(None, [done(progress), *failed, time, *now_running, note]))


def ending(progress: Progress, now: datetime) -> str:
    """Return the line that stays: how many jobs are done, and how long they took."""
    taken = (now - progress.started).total_seconds() if progress.started else 0.0
    failed = f", {len(progress.failed)} failed" if progress.failed else ""
    return f"{done(progress)} done{failed}, in {in_words(taken)}"


def done(progress: Progress) -> str:
    """Write how many jobs are done: ``3 of 8 jobs``."""
    return f"{progress.done} of {sum(progress.planned.values())} jobs"


def in_words(seconds: float) -> str:
    """Write seconds: ``45 s``, ``3 min 05 s``, ``2 h 10 min``."""
    minutes, rest = divmod(round(seconds), 60)
    if not minutes:
        return f"{rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"
