"""Which rows of a table differ: paired over seeds, corrected by Holm's method."""

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import pandas as pd
from tabulate import tabulate  # type: ignore[import-untyped]

from fedstage.errors import FedstageError
from fedstage.results.at_hand.runs import read_target
from fedstage.results.cells import names_of
from fedstage.results.claims.comparisons import Cell
from fedstage.results.claims.measurements import cells_of, values_of_runs
from fedstage.results.claims.report import p_text
from fedstage.results.claims.significance import LEVEL, holm, p_outside, paired
from fedstage.results.intervals import confidence_interval
from fedstage.results.runs_file import ExperimentRuns
from fedstage.results.tables.labels import NOTHING, join_for_people, signed
from fedstage.results.tables.runs import frame_of_runs
from fedstage.settings.scores import SECONDS, Axis

HIGHER, LOWER, UNDECIDED = "higher", "lower", "undecided"


def compare(
    target: str,
    rows: Collection[str] = (),
    *,
    metric: str | None = None,
    folder: str | Path = ".",
) -> pd.DataFrame:
    """Return the differences between all rows of a target's table, in the same columns.

    Runs of one seed share partition, participants and initial weights, so that each seed gives one
    difference; their mean is judged by the paired t-test (`fedstage.results.intervals`), as claims
    are. The p-values are corrected for all comparisons that are returned (Holm 1979).

    Parameters
    ----------
    target, folder
        As for `load`.
    rows : collection of str
        Values of the rows to compare, such as methods; by default all rows.
    metric : str, optional
        A column of the metrics; by default the table's.

    Returns
    -------
    pandas.DataFrame
        Columns `row`, `than` (rows by their labels), `column` (of the table, empty where it has
        none), `seeds`, `difference` (row - than, mean over the seeds that both have), `low` and
        `high` (its own 95 % interval, NaN for a single seed), `p` (two-sided, corrected) and
        `verdict` (``higher`` or ``lower`` if p is at most 0.05, else ``undecided``).

    Raises
    ------
    FedstageError
        If there are no results, no such rows or metric, or nothing to compare.
    """
    experiment = read_target(target, Path(folder))
    if metric is None and experiment.metric in SECONDS:
        raise FedstageError(f"{target}: metric = {experiment.metric!r}: name another metric")
    values = values_of_runs(frame_of_runs(experiment, target), metric or experiment.metric)
    cells = cells_of(experiment, values, published=False)
    compared = [_compared(*pair, experiment) for pair in _pairs(target, cells, rows, experiment)]
    if not compared:
        raise FedstageError(f"{target}: there are no two rows to compare")
    frame = pd.DataFrame(compared)
    frame["p"] = holm(list(frame["p"]))
    frame["verdict"] = [
        _verdict(*pair) for pair in zip(frame["p"], frame["difference"], strict=True)
    ]
    return frame


def _pairs(
    target: str, cells: Sequence[Cell], rows: Collection[str], experiment: ExperimentRuns
) -> Iterator[tuple[Cell, Cell]]:
    """Yield the pairs of cells of one column, in the order of the table."""
    axes = experiment.rows
    for name in rows:
        if not any(_is_named(cell.axes, axes, name) for cell in cells):
            known = dict.fromkeys(str(cell.axes[axis]) for cell in cells for axis in axes)
            raise FedstageError(f"{target}: rows: {name!r}: no such row; use {', '.join(known)}")
    wanted = [c for c in cells if not rows or any(_is_named(c.axes, axes, n) for n in rows)]
    for cell, other in combinations(wanted, 2):
        if all(cell.axes[axis] == other.axes[axis] for axis in cell.axes if axis not in axes):
            yield cell, other


def _is_named(axes: Mapping[str, Axis], rows: Sequence[str], name: str) -> bool:
    return any(name in (str(axes[axis]), *names_of(axis, axes[axis])) for axis in rows)


def _compared(cell: Cell, other: Cell, experiment: ExperimentRuns) -> dict[str, object]:
    differences = paired(cell.values, other.values)
    interval = confidence_interval(differences)
    return {
        "row": _row(cell, experiment),
        "than": _row(other, experiment),
        "column": join_for_people(experiment.columns, cell.axes, experiment),
        "seeds": interval.n,
        "difference": interval.mean,
        "low": interval.low,
        "high": interval.high,
        "p": p_outside(differences, 0.0, 0.0),
    }


def _row(cell: Cell, experiment: ExperimentRuns) -> str:
    """Return the labels of a row: a method's name, and other axes with their values."""
    written = join_for_people(experiment.rows, cell.axes, experiment)
    return written.removeprefix("Method = ")


def _verdict(p: float, difference: float) -> str:
    if p > LEVEL:
        return UNDECIDED
    return HIGHER if difference > 0 else LOWER


def write(differences: pd.DataFrame) -> str:
    """Return the frame of `compare` as a table for a terminal."""
    lines = [_written(row) for row in differences.to_dict("records")]
    shown = [name for name in lines[0] if any(line[name] for line in lines)]
    texts = [[line[name] for name in shown] for line in lines]
    return str(tabulate(texts, headers=shown, tablefmt="simple", disable_numparse=True))


def _written(row: Mapping[Hashable, Any]) -> dict[str, str]:
    interval = f"{signed(row['low'])} to {signed(row['high'])}"
    return {
        "row": row["row"],
        "than": row["than"],
        "column": row["column"],
        "seeds": str(row["seeds"]),
        "difference": signed(row["difference"]),
        "95 % interval": NOTHING if row["seeds"] < 2 else interval,
        "p (Holm)": p_text(row["p"]),
        "verdict": row["verdict"],
    }
