"""Tests of which rows of a table differ, paired over seeds, corrected by Holm's method."""

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from itertools import combinations
from math import isnan
from pathlib import Path
from typing import Any

import pandas as pd
from tabulate import tabulate  # type: ignore[import-untyped]

from fedstage.errors import FedstageError
from fedstage.experiments.runs_file import ExperimentRuns
from fedstage.outcomes.comparisons import Cell
from fedstage.results.at_hand.runs import read_finished, read_target
from fedstage.results.claims.judging import cells_of, values_of_runs
from fedstage.results.claims.report import p_text
from fedstage.results.intervals import (
    LEVEL,
    holm,
    interval_of_differences,
    p_of_differences,
    paired,
)
from fedstage.results.tables import latex
from fedstage.results.tables.columns import frame_as_csv
from fedstage.results.tables.labels import METRICS, NOTHING, join_for_people, signed
from fedstage.results.tables.runs import frame_of_runs
from fedstage.settings.cells import names_of
from fedstage.settings.scores import SECONDS
from fedstage.storage.files import save_text

_LEFT = ("row", "than", "column", "verdict")
HIGHER, LOWER, UNDECIDED, IDENTICAL = "higher", "lower", "undecided", "identical"


def compare(
    target: str,
    rows: Collection[str] = (),
    *,
    baseline: str | None = None,
    metric: str | None = None,
    folder: str | Path = ".",
) -> pd.DataFrame:
    """Return the differences between rows of a target's table, in the same columns.

    Runs of one seed share partition, participants and initial weights, so that each seed gives one
    difference; their mean is judged by the paired t-test (`fedstage.results.intervals`), as claims
    are. The p-values are corrected for all comparisons that are returned (Holm 1979).

    Parameters
    ----------
    target, folder
        As for `load`.
    rows : collection of str
        Values of the rows to compare, such as methods; by default all rows.
    baseline : str, optional
        A value, such as a method, whose rows are the only ones to compare with: each row is
        compared with the one of these that agrees with it on all further axes. By default all pairs
        of rows are compared.
    metric : str, optional
        A column of the metrics; by default the table's.

    Returns
    -------
    pandas.DataFrame
        Columns `row`, `than` (rows by their labels), `column` (of the table, empty where it has
        none), `seeds`, `difference` (row - than, mean over the seeds that both have), `low` and
        `high` (its own 95 % interval, NaN for a single seed and for up to four that all differ by
        the same), `p` (two-sided, corrected, 1 without an interval) and `verdict` (``higher`` or
        ``lower`` if p is at most 0.05, ``identical`` if the scores of every seed are the same,
        else ``undecided``).

    Raises
    ------
    FedstageError
        If there are no results, no such rows or metric, or nothing to compare.
    """
    experiment = read_finished(target, Path(folder))
    if metric is None and experiment.metric in SECONDS:
        raise FedstageError(f"{target}: metric = {experiment.metric!r}: name another metric")
    values = values_of_runs(frame_of_runs(experiment, target), metric or experiment.metric)
    cells = cells_of(experiment, values)
    axes = experiment.rows
    for row in rows:
        _check_row(f"{target}: rows", cells, axes, row)
    if baseline is not None:
        _check_row(f"{target}: baseline", cells, axes, baseline)
    wanted = [c for c in cells if not rows or any(_axes_named(c, axes, name) for name in rows)]
    pairs = _pairs(wanted, axes) if baseline is None else _with(baseline, wanted, cells, axes)
    compared = [_compared(*pair, experiment) for pair in pairs]
    if not compared:
        raise FedstageError(f"{target}: there are no two rows to compare")
    frame = pd.DataFrame(compared)
    frame["p"] = holm(list(frame["p"]))
    frame["verdict"] = [
        same or _verdict(p, difference)
        for same, p, difference in frame[["verdict", "p", "difference"]].itertuples(index=False)
    ]
    return frame


def _check_row(where: str, cells: Sequence[Cell], axes: Sequence[str], name: str) -> None:
    """Refuse a name that no row has."""
    if not any(_axes_named(cell, axes, name) for cell in cells):
        known = dict.fromkeys(str(cell.axes[axis]) for cell in cells for axis in axes)
        raise FedstageError(f"{where}: {name!r}: no such row; use {', '.join(known)}")


def _pairs(cells: Sequence[Cell], axes: Sequence[str]) -> Iterator[tuple[Cell, Cell]]:
    """Yield the pairs of cells of one column, in the order of the table."""
    return (pair for pair in combinations(cells, 2) if _agree(*pair, axes))


def _with(
    baseline: str, wanted: Sequence[Cell], cells: Sequence[Cell], axes: Sequence[str]
) -> Iterator[tuple[Cell, Cell]]:
    """Yield each cell with the baseline's cell that differs only in the axes that name it."""
    bases = [(cell, named) for cell in cells if (named := _axes_named(cell, axes, baseline))]
    others = [cell for cell in wanted if not _axes_named(cell, axes, baseline)]
    return ((cell, base) for cell in others for base, named in bases if _agree(cell, base, named))


def _axes_named(cell: Cell, axes: Sequence[str], name: str) -> list[str]:
    """Return the row axes on which a cell has this name as its value."""
    return [
        axis for axis in axes if name in (str(cell.axes[axis]), *names_of(axis, cell.axes[axis]))
    ]


def _agree(cell: Cell, other: Cell, but: Sequence[str]) -> bool:
    """Whether cells have the same values on all axes but some."""
    return all(cell.axes[axis] == other.axes[axis] for axis in cell.axes if axis not in but)


def _compared(cell: Cell, other: Cell, experiment: ExperimentRuns) -> dict[str, object]:
    differences = paired(cell.values, other.values)
    interval = interval_of_differences(differences)
    return {
        "row": _row(cell, experiment),
        "than": _row(other, experiment),
        "column": join_for_people(experiment.columns, cell.axes, experiment),
        "seeds": interval.n,
        "difference": interval.mean,
        "low": interval.low,
        "high": interval.high,
        "p": p_of_differences(differences),
        "verdict": IDENTICAL if set(differences) == {0} else "",
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
    heads, lines = _texts(differences)
    return str(tabulate(lines, headers=heads, tablefmt="simple", disable_numparse=True))


def save(
    differences: pd.DataFrame,
    path: Path,
    target: str,
    *,
    metric: str | None = None,
    folder: str | Path = ".",
) -> str:
    """Write the frame of `compare` as a file, and return a line about it.

    ``.csv`` has the exact numbers, ``.tex`` is a table for papers; `target`, `metric` and `folder`
    are as in `compare`.

    Raises
    ------
    FedstageError
        If the path has another suffix.
    """
    if path.suffix == ".csv":
        save_text(path, frame_as_csv(differences))
    elif path.suffix == ".tex":
        save_text(path, _latex(differences, target, read_target(target, Path(folder)), metric))
    else:
        raise FedstageError(f"--to = {path}: must end in .tex or .csv")
    return f"{len(differences)} comparisons are in {path}"


def _latex(
    differences: pd.DataFrame, target: str, experiment: ExperimentRuns, metric: str | None
) -> str:
    heads, lines = _texts(differences)
    measure = metric or experiment.metric
    name = f"{METRICS[measure]} (%)" if measure in METRICS else measure
    source = f"Differences of {name} between rows of `{target}`, in the last evaluated round."
    return latex.render_float(
        f"{latex.escape(experiment.title)}. {latex.inline(source)}",
        f"{target}-differences",
        "".join("l" if head in _LEFT else "r" for head in heads),
        [latex.line(heads)],
        [latex.line(texts) for texts in lines],
        [
            "**difference**: row minus than, paired over seeds: the mean of the seeds that both "
            "have.",
            "**95 % interval**: its own confidence interval (Student's t), without correction; "
            "none of a single seed, or of up to four that all differ by the same.",
            f"**p (Holm)**: of the paired t-test, corrected for the {len(lines)} comparisons of "
            "this table (Holm 1979); **verdict**: `undecided` above 0.05, `identical` if all "
            "scores are.",
        ],
    )


def _texts(differences: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Return the heads and lines of differences for people, without columns that are empty."""
    lines = [_written(row) for row in differences.to_dict("records")]
    shown = [name for name in lines[0] if any(line[name] for line in lines)]
    return shown, [[line[name] for name in shown] for line in lines]


def _written(row: Mapping[Hashable, Any]) -> dict[str, str]:
    interval = f"{signed(row['low'])} to {signed(row['high'])}"
    return {
        "row": row["row"],
        "than": row["than"],
        "column": row["column"],
        "seeds": str(row["seeds"]),
        "difference": signed(row["difference"]),
        "95 % interval": NOTHING if isnan(row["low"]) else interval,
        "p (Holm)": p_text(row["p"]),
        "verdict": row["verdict"],
    }
