"""What a run of snakemake has done so far, read from its log in `.snakemake/log`."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from fedstage.errors import FedstageError
from fedstage.execution.runs import noted

_TIME = re.compile(r"\[(\w{3} \w{3} +\d+ \d\d:\d\d:\d\d \d{4})\]$")
_COUNT = re.compile(r"(\w+) +(\d+)$")
_CORES = re.compile(r"Provided cores: (\d+)$")
#: A rule with a message is announced by it, one without by its name.
_STARTED = re.compile(r"(?:local)?[Jj]ob (\d+): (.*)$")
_FINISHED = re.compile(r"Finished jobid: (\d+) \(Rule: (\w+)\)$")
_FAILED = re.compile(r"Error in rule (\w+)[,:]")
_FAILED_JOB = re.compile(r" +jobid: (\d+)$")
_ENDED = ("Complete log", "Exiting because", "Terminating processes")


@dataclass
class Progress:
    """Jobs of a run: planned by rule, running by number, finished with their seconds by rule.

    Times have the log's resolution, a second. `names` are the names of trained runs by their
    folders, such as feddf/seed_0.
    """

    cores: int = 1
    started: datetime | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    planned: dict[str, int] = field(default_factory=dict)
    running: dict[int, tuple[datetime, str]] = field(default_factory=dict)
    finished: dict[str, list[float]] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    ended: bool = False

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


def latest_log(folder: Path) -> Path:
    """Return the log of the current or last run in a folder; FedstageError if there is none.

    Calls that are refused while a run works, or after it was killed, have later logs.
    """
    runs = noted(folder)
    working = [log for log, process in runs.items() if not process.has_ended()]
    logs = working or list(runs) or list((folder / ".snakemake/log").glob("*.snakemake.log"))
    if not logs:
        raise FedstageError(f"{folder}: no run of snakemake has a log here (.snakemake/log)")
    return max(logs, key=lambda path: path.name)


def read_progress(lines: Iterable[str]) -> Progress:
    """Return the progress that the lines of a log report; other lines are skipped."""
    progress, now = Progress(), None
    for line in (line.rstrip("\n") for line in lines):
        if found := _TIME.match(line):
            now = datetime.strptime(found[1], "%a %b %d %H:%M:%S %Y")
            progress.started = progress.started or now
        elif progress.started is None:
            _plan(progress, line)
        elif now is not None:
            _follow(progress, line, now)
    return progress


def _plan(progress: Progress, line: str) -> None:
    """Read a line that comes before the first job."""
    if found := _CORES.match(line):
        progress.cores = int(found[1])
    elif (found := _COUNT.match(line)) and found[1] != "total":
        progress.planned[found[1]] = int(found[2])
    progress.ended |= line.startswith(_ENDED)


def _follow(progress: Progress, line: str, now: datetime) -> None:
    """Read a line about the work of jobs."""
    if found := _STARTED.match(line):
        progress.running[int(found[1])] = now, found[2]
    elif found := _FINISHED.match(line):
        begun, _ = progress.running.pop(int(found[1]), (now, ""))
        progress.finished.setdefault(found[2], []).append((now - begun).total_seconds())
    elif found := _FAILED.match(line):
        progress.failed.append(found[1])
    elif found := _FAILED_JOB.match(line):
        progress.running.pop(int(found[1]), None)
    progress.ended |= line.startswith(_ENDED)
