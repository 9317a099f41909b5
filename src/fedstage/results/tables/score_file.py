"""The scores file: all measurements of an experiment's runs, as CSV that outlasts the runs.

One row per run, evaluated round and measure: the run's values on all axes, what was evaluated, on
which samples, the round, the measure (a column of `METRICS_SCHEMA` or of `OF_RUNS`) and its exact
value. Then follow the digest of the run's settings without its seed, and, from the records of jobs,
the commit of the source (or the version), the machine, and the seconds of the jobs of the run's
recipe. The latter are empty if the records are gone. Measures without a value have no row.
"""

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from fedstage.algorithm.measures.metrics import METRICS_SCHEMA
from fedstage.errors import FedstageError
from fedstage.experiments.runs_file import SEED, ExperimentRun, ExperimentRuns
from fedstage.protocol.digests import canonical, digest
from fedstage.results.tables.columns import harmless
from fedstage.results.tables.measured import OF_RUNS
from fedstage.settings.cells import as_text
from fedstage.storage.tables import frame_of

#: Columns that identify a score together with the axes of the run.
WHAT = ("evaluated", "role", "round", "measure")
VALUE, SETTINGS = "value", "settings"
#: Columns about the origin of a score.
ORIGIN = ("source", "machine", "seconds")

_MEASURES = [name for name in METRICS_SCHEMA.names if name not in WHAT]

Row = dict[str, str]
Key = tuple[str, ...]


@dataclass(frozen=True)
class ScoreFile:
    """The rows of a scores file as texts, and the axes of its runs; `name` is for messages."""

    name: str
    axes: tuple[str, ...]
    rows: list[Row]

    def runs(self) -> dict[Key, list[Row]]:
        """Return the rows by run."""
        found: dict[Key, list[Row]] = {}
        for row in self.rows:
            found.setdefault(tuple(row[axis] for axis in self.axes), []).append(row)
        return found

    def show(self, row: Row) -> str:
        """Write a row's run, for messages."""
        return ", ".join(f"{axis} = {row[axis]}" for axis in self.axes)


def columns_of(axes: Sequence[str]) -> list[str]:
    """Return the columns of a scores file; an axis `role` replaces the column of that name."""
    what = [name for name in WHAT if name not in axes]
    return [*axes, *what, VALUE, SETTINGS, *ORIGIN]


def axes_of(experiment: ExperimentRuns) -> tuple[str, ...]:
    """Return the axes of all runs of an experiment."""
    return tuple(dict.fromkeys(name for run in experiment.runs for name in run.settings))


def key_of(settings: Mapping[str, Any], axes: Sequence[str]) -> Key:
    """Return the key, in a scores file, of the run with these values; missing axes are empty."""
    texts = (as_text(settings[axis]) if axis in settings else "" for axis in axes)
    return tuple(str(harmless(text)) for text in texts)


def score_rows(
    run: ExperimentRun, axes: Sequence[str], measured: pd.DataFrame, origin: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return the rows of a run, from the frame of `measure`, rounds in order."""
    place = dict(zip(axes, key_of(run.settings, axes), strict=True))
    about = {SETTINGS: settings_digest(run), **origin}
    names = [*_MEASURES, *(name for name in OF_RUNS if name in measured)]
    return [
        {**{name: row[name] for name in ("evaluated", "role", "round")}, **place}
        | {"measure": name, VALUE: row[name], **about}
        for row in measured.to_dict("records")
        for name in names
        if row[name] is not None and not math.isnan(row[name])
    ]


def settings_digest(run: ExperimentRun) -> str:
    """Return a digest of the settings of each candidate of a run, without defaults and seeds.

    The settings of a run that starts from another one include the other's, in place of the file of
    its model, whose name depends on the seed.
    """
    return digest(
        [
            [_without_seed(_without_start(part)) for part in canonical(candidate)["parts"]]
            for candidate in run.candidates
        ]
    )


def _without_start(part: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {
        kind: {key: value for key, value in settings.items() if key != "start"}
        for kind, settings in part.items()
    }


def _without_seed(content: Any) -> Any:
    if isinstance(content, list):
        return [_without_seed(part) for part in content]
    if isinstance(content, dict):
        return {key: _without_seed(part) for key, part in content.items() if key != SEED}
    return content


def read_score_file(path: Path) -> ScoreFile:
    """Read a scores file.

    Raises
    ------
    FedstageError
        If the file is missing, lacks a column or is not a CSV file of scores.
    """
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file, strict=True)
            names, rows = list(reader.fieldnames or ()), list(reader)
    except OSError as error:
        raise FedstageError(f"{path}: {error.strerror}") from None
    except (csv.Error, UnicodeDecodeError) as error:
        raise FedstageError(f"{path}: truncated or altered, not CSV ({error})") from None
    known = (*WHAT, VALUE, SETTINGS, *ORIGIN)
    missing = [name for name in (*known, SEED) if name not in names]
    if missing:
        raise FedstageError(f"{path}: {missing[0]}: no such column; not a file of scores")
    end = min(names.index(name) for name in known if name != "role")
    if any(None in row or None in row.values() for row in rows) or not rows:
        raise FedstageError(f"{path}: truncated or altered: a row has not {len(names)} values")
    return ScoreFile(str(path), tuple(names[:end]), rows)


def measured_in(experiment: ExperimentRuns, scores: ScoreFile) -> list[pd.DataFrame]:
    """Return the result of `measure` for each run of an experiment, from a scores file.

    Raises
    ------
    FedstageError
        If the file lacks a run, or has scores of a run with other settings.
    """
    runs = scores.runs()
    return [_measured(run, scores, runs) for run in experiment.runs]


def _measured(run: ExperimentRun, scores: ScoreFile, runs: Mapping[Key, list[Row]]) -> pd.DataFrame:
    rows = runs.get(key_of(run.settings, scores.axes))
    if rows is None:
        place = dict(zip(scores.axes, key_of(run.settings, scores.axes), strict=True))
        raise FedstageError(f"{scores.name}: {scores.show(place)}: no scores of this run")
    stated = settings_digest(run)
    if others := {row[SETTINGS] for row in rows} - {stated}:
        raise FedstageError(
            f"{scores.name}: {scores.show(rows[0])}: settings = {min(others)}: must be {stated}, "
            "the digest of the experiment's"
        )
    rounds: dict[tuple[str, ...], dict[str, float]] = {}
    for row in rows:
        when = tuple(row[name] for name in ("round", "evaluated", "role"))
        rounds.setdefault(when, {})[row["measure"]] = _number(scores, row)
    return _frame(rounds)


def _number(scores: ScoreFile, row: Row) -> float:
    """Return the value of a row; for a count, the exact integer."""
    text = row[VALUE]
    try:
        return int(text) if text.lstrip("-").isdecimal() else float(text)
    except ValueError:
        raise FedstageError(
            f"{scores.name}: {scores.show(row)}: {row['measure']} = {text!r}: must be a number"
        ) from None


def _frame(rounds: Mapping[tuple[str, ...], Mapping[str, float]]) -> pd.DataFrame:
    """Return rounds as a frame, with the types of metrics files."""
    places = [(int(round_), *rest) for round_, *rest in rounds]
    given = dict(zip(("round", "evaluated", "role"), zip(*places, strict=True), strict=True))
    found = [*rounds.values()]

    def column(field: pa.Field) -> list[Any]:
        none = None if field.nullable else math.nan
        return list(given.get(field.name, [row.get(field.name, none) for row in found]))

    table = pa.table({field.name: column(field) for field in METRICS_SCHEMA}, METRICS_SCHEMA)
    extra = {
        name: [float(row.get(name, math.nan)) for row in found]
        for name in OF_RUNS
        if any(name in row for row in found)
    }
    return frame_of(table).assign(**extra).sort_values("round", ignore_index=True)
