"""``fedstage watch``: what runs, what is next, how long it takes, and how training proceeds."""

import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from fedstage.errors import FedstageError
from fedstage.execution.runs import is_locked, noted
from fedstage.execution.snakemake_log import Progress, latest_log, read_progress
from fedstage.execution.time_left import in_words, seconds_of, time_left
from fedstage.plan.results import RESULTS
from fedstage.results.losses import mean_loss
from fedstage.storage.tables import load_table

_SHOWN = 12  # lines of each part
_WIDTH = 30  # characters of the bar
_CLEAR = "\x1b[H\x1b[2J"
_SILENT = "snakemake's log has no jobs, as of a run that had none, or --quiet all"


def watch(folder: Path, every: float, once: bool) -> str:
    """Print what the run in a working folder does; return how it ended.

    Parameters
    ----------
    every : float
        Seconds between two looks.
    once : bool
        Whether to look once only.

    Raises
    ------
    FedstageError
        If no run has a log in the folder.
    """
    known: dict[str, float | None] = {}
    while True:
        progress, text = look(folder, known)
        if once or progress.ended:
            return text
        print(f"{_CLEAR}{text}", flush=True)
        try:
            time.sleep(every)
        except KeyboardInterrupt:
            return ""


def look(folder: Path, known: dict[str, float | None]) -> tuple[Progress, str]:
    """Return the progress of the last run in a folder, and its description."""
    log = latest_log(folder)
    with log.open(encoding="utf-8", errors="replace") as lines:
        progress = read_progress(lines)
    process = noted(folder).get(log)
    killed = process is not None and process.has_ended()
    progress.ended |= killed or not is_locked(folder)
    text = describe(progress, datetime.now(), seconds_of(progress, folder, known))
    started = progress.started.timestamp() if progress.started else time.time()
    return progress, "\n".join([text, *_part("training", last_rounds(folder, started))])


def describe(progress: Progress, now: datetime, seconds: Mapping[str, float | None]) -> str:
    """Return the text: progress, what runs, what is left; `seconds` are per job, by rule."""
    total = sum(progress.planned.values())
    if progress.ended and not total:
        return f"ended: {_SILENT}"
    bar = "#" * (_WIDTH * progress.done // max(1, total))
    head = f"[{bar:.<{_WIDTH}}] {progress.done} of {total} jobs, {_state(progress, now, seconds)}"
    running = [
        f"{in_words((now - begun).total_seconds()):>8}  {message}"
        for begun, message in progress.running.values()
    ]
    left = [
        f"{count:>8}  {rule}{_each(seconds.get(rule))}" for rule, count in progress.left.items()
    ]
    failed = [f"{'':>8}  {rule}" for rule in dict.fromkeys(progress.failed)]
    parts = (("running", [] if progress.ended else running), ("left", left), ("failed", failed))
    return "\n".join([head, *(line for title, rows in parts for line in _part(title, rows))])


def last_rounds(folder: Path, started: float) -> list[str]:
    """Return a line for each training that advanced since a time: its round and training loss."""
    lines = []
    for place in sorted((folder / RESULTS / "training").glob("*")):
        tables = sorted(place.glob("round_*/group_0/participants.parquet"))
        if tables and tables[-1].stat().st_mtime >= started:
            lines.append(f"  {place.name}: {_loss(tables[-1])}")
    return lines


def _loss(table: Path) -> str:
    """Write the round and the training loss of a table of participants."""
    round_ = int(table.parent.parent.name.removeprefix("round_"))
    try:
        loss = mean_loss(load_table(table, ["loss", "samples"]).to_pylist())
    except FedstageError as error:  # it may be written or deleted at this moment
        return f"round {round_}, {error}"
    if loss is None:
        return f"round {round_}, no participants"
    return f"round {round_}, training loss {loss:.4f}"


def _state(progress: Progress, now: datetime, seconds: Mapping[str, float | None]) -> str:
    if progress.ended:
        return "ended"
    if not progress.planned:
        return "planning, or run with --quiet all, of which nothing is logged"
    return time_left(progress, now, seconds)


def _part(title: str, rows: list[str]) -> list[str]:
    more = [f"{'':>8}  and {len(rows) - _SHOWN} more"] if len(rows) > _SHOWN else []
    return [title, *rows[:_SHOWN], *more] if rows else []


def _each(seconds: float | None) -> str:
    return "" if seconds is None else f", {seconds:.1f} s each"
