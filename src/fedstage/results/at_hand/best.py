"""The best values of swept axes, as settings of cells to paste into an experiment."""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean

import yaml

from fedstage.algorithm.measures.metrics import spread
from fedstage.errors import FedstageError
from fedstage.experiments.runs_file import ExperimentRuns
from fedstage.outcomes.comparisons import Cell, rest_of
from fedstage.results.at_hand.runs import METHOD, read_finished
from fedstage.results.claims.judging import cells_of, values_of_runs
from fedstage.results.tables.labels import METRICS, mean_and_std, name_for_people
from fedstage.results.tables.runs import frame_of_runs
from fedstage.settings.cells import as_text
from fedstage.settings.merging import Raw, assign
from fedstage.settings.scores import Axis

#: Axes that describe a task, with all settings below them; a method is not tuned by them.
_GIVEN = (METHOD, "data", "partition", "public", "clients", "participants")


def best(target: str, over: Collection[str] = ()) -> str:
    """Return the best values of swept axes, for each point of the other axes, as YAML.

    Best is the highest mean over seeds of the table's metric after the last evaluated round; of
    equal means, the first in the grid. The YAML has the `cells` of a scale. Its comments give the
    means, and name best values at an edge of the grid.

    Parameters
    ----------
    target : str
        As for `fedstage.results.load`.
    over : collection of str
        The swept axes; by default all axes with several numbers, except for the numbers of clients
        and participants and settings of data and partition.

    Raises
    ------
    FedstageError
        If there are no results, a run is not scored on validation samples, or no axis is swept.
    """
    experiment = read_finished(target, Path())
    for role in sorted({run.length.role for run in experiment.runs} - {"validation"}):
        raise FedstageError(
            f"{target}: role = {role!r}: choose on validation samples only; write "
            "base: {role: validation, validation: 0.1}"
        )
    if experiment.metric not in METRICS:
        raise FedstageError(f"{target}: metric = {experiment.metric!r}: use {', '.join(METRICS)}")
    values = values_of_runs(frame_of_runs(experiment, target), experiment.metric)
    cells = cells_of(experiment, values)
    tried = _swept(target, cells, over)
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(rest_of(cell, tried), []).append(cell)
    chosen = [max(group, key=lambda cell: fmean(cell.values.values())) for group in groups.values()]
    lines = [line for same in _merged(chosen, tried) for line in _entry(same, tried, experiment)]
    about = f"# {target}: best {METRICS[experiment.metric]} (%) on validation samples."
    place = "# Paste it under a scale of an experiment whose grid has the axes of `at`."
    return "\n".join([about, place, "cells:", *lines])


def _swept(target: str, cells: Sequence[Cell], over: Collection[str]) -> dict[str, list[float]]:
    """Return the swept axes, with the values that were tried."""
    tried = {axis: _numbers(_values(cells, axis)) for axis in cells[0].axes}
    several = [axis for axis, numbers in tried.items() if len(numbers) > 1]
    for axis in over:
        if axis not in several:
            allowed = f"use {', '.join(several)}" if several else "the grid has none"
            raise FedstageError(f"{target}: over = {axis!r}: no axis of several numbers; {allowed}")
    swept = over or [axis for axis in several if axis.partition(".")[0] not in _GIVEN]
    if not swept:
        named = f"; name axes with --over: {', '.join(several)}" if several else ""
        raise FedstageError(f"{target}: grid: no setting of methods has several numbers{named}")
    return {axis: tried[axis] for axis in swept}


def _values(cells: Iterable[Cell], axis: str) -> list[Axis]:
    return list(dict.fromkeys(cell.axes[axis] for cell in cells))


def _numbers(values: Sequence[Axis]) -> list[float]:
    """Return values that are all numbers, or else nothing."""
    numbers = [value for value in values if isinstance(value, int | float)]
    return [] if len(numbers) < len(values) or any(type(n) is bool for n in numbers) else numbers


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
    cells: Sequence[Cell], tried: Mapping[str, Sequence[float]], experiment: ExperimentRuns
) -> Iterator[str]:
    """Yield the lines of an entry of `cells`: its means, values at an edge, and its settings."""
    axes = cells[0].axes
    others = sorted(axes.keys() - tried, key=lambda axis: (axis != METHOD, axis))
    at = {axis: _values(cells, axis) for axis in others}
    for cell in cells:
        scores = list(cell.values.values())
        mean, seeds = mean_and_std(fmean(scores), spread(scores)), len(scores)
        yield f"  # {name_for_people(at, cell.axes, experiment)}: {mean}, seeds: {seeds}"
    settings: Raw = {}
    for axis, numbers in tried.items():
        settings = assign(settings, axis, axes[axis])
        ends: dict[Axis, str] = {min(numbers): "smallest", max(numbers): "largest"}
        if axes[axis] in ends:
            every = ", ".join(map(as_text, numbers))
            yield f"  # {axis}: the best of {every} is the {ends[axes[axis]]}: widen the grid"
    short = {axis: values if len(values) > 1 else values[0] for axis, values in at.items()}
    yield f"  - at: {_inline(short)}"
    yield f"    settings: {_inline(settings)}"


def _inline(content: Mapping[str, object]) -> str:
    text: str = yaml.safe_dump(content, default_flow_style=True, sort_keys=False, width=math.inf)
    return text.strip()
