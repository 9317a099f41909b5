"""Tests of which rows of a table differ, and the best values of swept axes."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from math import isnan
from pathlib import Path
from statistics import fmean, stdev

import pandas as pd
import yaml

from fedstage.errors import FedstageError
from fedstage.results.comparisons import Cell, rest_of
from fedstage.results.labels import (
    METRICS,
    NOTHING,
    mean_and_std,
    metric_head,
    p_text,
    place_label,
    show_value,
    signed,
)
from fedstage.results.measures import cells_of
from fedstage.results.statistics import (
    LEVEL,
    holm,
    interval_of_differences,
    p_of_differences,
    paired,
)
from fedstage.results.table import Table
from fedstage.results.targets import read_target
from fedstage.results.tidy import METHOD, Header
from fedstage.settings.cells import names_of
from fedstage.settings.merging import Raw, assign
from fedstage.settings.scores import SECONDS, Axis

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
    difference; their mean is judged by the paired t-test, as claims are. The p-values are corrected
    for all comparisons that are returned (Holm 1979).

    Parameters
    ----------
    target, folder
        As for `scores`.
    rows : collection of str
        Values of the rows to compare, such as methods; by default all rows.
    baseline : str, optional
        A value, such as a method, whose rows are the only ones to compare with: each row is
        compared with the one of these that agrees with it on all further axes. By default all pairs
        of rows are compared.
    metric : str, optional
        A measure; by default the table's.

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
    scores = read_target(target, folder=folder)
    header, axes = scores.header, scores.header.rows
    if metric is None and header.metric in SECONDS:
        raise FedstageError(f"{target}: metric = {header.metric!r}: name another metric")
    cells = cells_of(scores, metric or header.metric)
    named = [("rows", name) for name in rows] + ([("baseline", baseline)] if baseline else [])
    for where, name in named:
        if not any(_axes_named(cell, axes, str(name)) for cell in cells):
            known = dict.fromkeys(str(cell.axes[axis]) for cell in cells for axis in axes)
            raise FedstageError(
                f"{target}: {where}: {name!r}: no such row; use one of {', '.join(known)}"
            )
    wanted = [c for c in cells if not rows or any(_axes_named(c, axes, name) for name in rows)]
    if baseline is None:
        pairs = [pair for pair in combinations(wanted, 2) if _agree(*pair, axes)]
    else:
        pairs = [*_with(baseline, wanted, cells, axes)]
    if not pairs:
        raise FedstageError(f"{target}: there are no two rows to compare")
    frame = pd.DataFrame(_compared(*pair, header) for pair in pairs)
    frame["p"] = holm(frame["p"].tolist())
    told = zip(frame["verdict"], frame["p"], frame["difference"], strict=True)
    verdicts = [same or _verdict(p, difference) for same, p, difference in told]
    frame = frame.assign(verdict=verdicts)
    frame.attrs["metric"] = metric or header.metric
    return frame


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


def _compared(cell: Cell, other: Cell, header: Header) -> dict[str, object]:
    differences = paired(cell.values, other.values)
    interval = interval_of_differences(differences)
    return {
        "row": place_label(header.rows, cell.axes, header),
        "than": place_label(header.rows, other.axes, header),
        "column": place_label(header.columns, cell.axes, header),
        "seeds": interval.n,
        "difference": interval.mean,
        "low": interval.low,
        "high": interval.high,
        "p": p_of_differences(differences),
        "verdict": IDENTICAL if set(differences) == {0} else "",
    }


def _verdict(p: float, difference: float) -> str:
    if p > LEVEL:
        return UNDECIDED
    return HIGHER if difference > 0 else LOWER


def compare_table(differences: pd.DataFrame, target: str) -> Table:
    """Return the frame of `compare` as a table."""
    metric = differences.attrs["metric"]
    rows = differences.to_dict("records")
    shown = differences[["row", "than", "column"]].assign(
        seeds=[str(row["seeds"]) for row in rows],
        difference=[signed(row["difference"]) for row in rows],
    )
    shown["95 % interval"] = [
        NOTHING if isnan(row["low"]) else f"{signed(row['low'])} to {signed(row['high'])}"
        for row in rows
    ]
    shown["p (Holm)"] = [p_text(row["p"]) for row in rows]
    shown["verdict"] = differences["verdict"]
    shown = shown.loc[:, [bool(any(column)) for _, column in shown.items()]]
    about = (
        f"Differences of {metric_head(metric)}, row minus than, paired over seeds. p: paired "
        f"t-test, corrected for the {len(rows)} comparisons; intervals are not."
    )
    return Table(target, shown, 2 + ("column" in shown), differences, above=[about])


# --- the best values of swept axes ----------------------------------------------------------------

#: Axes that describe a task, with all settings below them; a method is not tuned by them.
_GIVEN = (METHOD, "data", "partition", "public", "clients", "participants")


def best(target: str, over: Collection[str] = (), folder: str | Path = ".") -> str:
    """Return the best values of swept axes, for each point of the other axes, as YAML.

    Best is the highest mean over seeds of the table's metric after the last evaluated round; of
    equal means, the first in the grid. The YAML has the `cells` of a scale. Its comments give the
    means, and name best values at an edge of the grid.

    Parameters
    ----------
    target, folder
        As for `scores`.
    over : collection of str
        The swept axes; by default all axes with several numbers, except for the numbers of clients
        and participants and settings of data and partition.

    Raises
    ------
    FedstageError
        If there are no results, a run is not scored on validation samples, or no axis is swept.
    """
    scores = read_target(target, folder=folder)
    header = scores.header
    for role in sorted({cell.role for cell in header.cells} - {"validation"}):
        raise FedstageError(
            f"{target}: role = {role!r}: choose on validation samples only; write "
            "base: {role: validation, validation: 0.1}"
        )
    if header.metric not in METRICS:
        raise FedstageError(f"{target}: metric = {header.metric!r}: use {', '.join(METRICS)}")
    cells = cells_of(scores, header.metric)
    tried = _swept(target, cells, over)
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(rest_of(cell, tried), []).append(cell)
    chosen = [max(group, key=lambda cell: fmean(cell.values.values())) for group in groups.values()]
    lines = [line for same in _merged(chosen, tried) for line in _entry(same, tried, header)]
    about = f"# {target}: best {METRICS[header.metric]} (%) on validation samples."
    place = "# Paste it under a scale of an experiment whose grid has the axes of `at`."
    return "\n".join([about, place, "cells:", *lines])


def _swept(target: str, cells: Sequence[Cell], over: Collection[str]) -> dict[str, list[float]]:
    """Return the swept axes, with the values that were tried."""
    values = {axis: _values(cells, axis) for axis in cells[0].axes}
    numbers: dict[str, list[float]] = {
        axis: [value for value in tried if type(value) in (int, float)]  # type: ignore[misc]
        for axis, tried in values.items()
    }
    several = [axis for axis, of in numbers.items() if len(of) == len(values[axis]) > 1]
    for axis in over:
        if axis not in several:
            allowed = f"use one of {', '.join(several)}" if several else "the grid has none"
            raise FedstageError(f"{target}: over = {axis!r}: no axis of several numbers; {allowed}")
    swept = over or [axis for axis in several if axis.partition(".")[0] not in _GIVEN]
    if not swept:
        named = f"; name axes with --over: {', '.join(several)}" if several else ""
        raise FedstageError(f"{target}: grid: no setting of methods has several numbers{named}")
    return {axis: numbers[axis] for axis in swept}


def _values(cells: Sequence[Cell], axis: str) -> list[Axis]:
    return list(dict.fromkeys(cell.axes[axis] for cell in cells))


def _merged(chosen: Sequence[Cell], swept: Collection[str]) -> list[list[Cell]]:
    """Join cells of equal best values if they are all combinations of their other values."""
    joined = [[cell] for cell in chosen]
    for axis in [axis for axis in [*chosen[0].axes][::-1] if axis not in swept]:
        alike: dict[str, list[Cell]] = {}
        for cells in joined:
            others = [_values(cells, other) for other in cells[0].axes if other != axis]
            alike.setdefault(repr(others), []).extend(cells)
        joined = list(alike.values())
    return joined


def _entry(
    cells: Sequence[Cell], tried: Mapping[str, Sequence[float]], header: Header
) -> Iterator[str]:
    """Yield the lines of an entry of `cells`: its means, values at an edge, and its settings."""
    axes = cells[0].axes
    others = sorted(axes.keys() - tried, key=lambda axis: (axis != METHOD, axis))
    at = {axis: _values(cells, axis) for axis in others}
    for cell in cells:
        values = [*cell.values.values()]
        deviation = stdev(values) if len(values) > 1 else math.nan
        mean, place = mean_and_std(fmean(values), deviation), place_label(at, cell.axes, header)
        yield f"  # {place}: {mean}, seeds: {len(values)}"
    settings: Raw = {}
    for axis, numbers in tried.items():
        settings = assign(settings, axis, axes[axis])
        ends: dict[Axis, str] = {min(numbers): "smallest", max(numbers): "largest"}
        if axes[axis] in ends:
            every = ", ".join(map(show_value, numbers))
            yield f"  # {axis}: the best of {every} is the {ends[axes[axis]]}: widen the grid"
    short = {axis: values if len(values) > 1 else values[0] for axis, values in at.items()}
    yield f"  - at: {_inline(short)}"
    yield f"    settings: {_inline(settings)}"


def _inline(content: Mapping[str, object]) -> str:
    text: str = yaml.safe_dump(content, default_flow_style=True, sort_keys=False, width=math.inf)
    return text.strip()
