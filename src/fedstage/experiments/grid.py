"""The values of a grid's axes, as tables and messages show them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, cast

from fedstage.errors import FedstageError
from fedstage.settings.cells import as_text, check_cells, names_of
from fedstage.settings.experiments import Experiment, Table, Values
from fedstage.settings.merging import plain
from fedstage.settings.scores import Axis, Cells, Reach
from fedstage.settings.validation import suggest


@dataclass(frozen=True)
class Point:
    """A point of a grid: `values` of its axes as settings, and as `shown` in tables."""

    values: dict[str, Any]
    shown: dict[str, Axis]

    def without(self, setting: str) -> "Point":
        """Return the point without the axes of a setting and of keys below it."""
        kept = [axis for axis in self.values if axis.partition(".")[0] != setting]
        return Point(
            {axis: self.values[axis] for axis in kept}, {axis: self.shown[axis] for axis in kept}
        )

    def at(self, axis: str, value: str) -> "Point":
        """Return the point with another value of an axis, if it has that axis."""
        if axis not in self.values:
            return self
        return Point({**self.values, axis: value}, {**self.shown, axis: value})


def points(grid: Mapping[str, Values]) -> list[Point]:
    """Return all points of a grid; the last axis varies fastest."""
    axes = [named(values) for values in grid.values()]
    return [
        Point(
            {axis: value for axis, (_, value) in zip(grid, pairs, strict=True)},
            {axis: name for axis, (name, _) in zip(grid, pairs, strict=True)},
        )
        for pairs in product(*axes)
    ]


def named(values: Values) -> list[tuple[Axis, Any]]:
    """Return pairs of the name, by default the label, and the value of each value of an axis."""
    if isinstance(values, Mapping):
        return list(values.items())
    return [(label(value), value) for value in values]


def with_seeds(experiment: Experiment, seeds: Collection[int]) -> Experiment:
    """Return an experiment whose grid has other seeds, at all scales."""
    scales = {}
    for name, change in experiment.scales.items():
        known = {**experiment.grid, **change.grid}.get("seed", ())
        first = [seed for seed in known if seed in seeds]
        grid = {**change.grid, "seed": [*first, *sorted(set(seeds).difference(first))]}
        scales[name] = change.model_copy(update={"grid": grid})
    return experiment.model_copy(update={"scales": scales})


def label(value: Any) -> Axis:
    """Return the text of a value of an axis; of a choice, its name and settings."""
    value = plain("", value)
    if isinstance(value, list):
        return " ".join(str(label(inner)) for inner in value)
    if not isinstance(value, Mapping):
        return cast(Axis, value)
    return " ".join(f"{key} {label(inner)}" for key, inner in value.items())


def short_name(value: Any) -> Any:
    """Return the name of a choice with settings, or the first of these; else the value as text."""
    if isinstance(value, Mapping):
        return value.get("name", next(iter(value), None))
    return label(value)


# --- checks ---------------------------------------------------------------------------------------


def check_axes(where: str, table: Table, grid: Mapping[str, Values]) -> None:
    """Refuse a table whose axes are not the grid's, and an axis with the same value twice.

    Raises
    ------
    FedstageError
        If there is such an axis; the message names it and the possible ones.
    """
    axes, allowed = [*table.rows, *table.columns], {"method", *grid} - {"seed"}
    for axis in axes:
        if axis not in allowed:
            raise FedstageError(
                f"{where}: table: {axis!r}: must be one of {', '.join(sorted(allowed))}"
                f"{suggest(axis, allowed)}"
            )
        if axes.count(axis) > 1:
            raise FedstageError(f"{where}: table: {axis!r} is among rows and columns twice")
    if table.over is not None:
        check_known(f"{where}: table.over", table.over, axes)
    if table.baseline is not None:
        check_known(f"{where}: table.baseline", table.baseline, map(str, grid.get("method", [])))
    for axis, values in grid.items():
        if axis in ("method", "seed") and not isinstance(values, list):
            raise FedstageError(f"{where}: grid.{axis}: must be a list; names are of other axes")
        if axis not in axes and axis != "seed" and len(values) > 1:
            raise FedstageError(f"{where}: table: {axis}: make it one of the rows or columns")
        if isinstance(values, list):
            full = [plain(axis.rpartition(".")[2], value) for value in values]
            for place, value in enumerate(values):
                if full[place] in full[:place]:
                    told = f"{value!r} is listed twice; keep one"
                    raise FedstageError(f"{where}: grid.{axis}: {told}")


def check_known(key: str, value: str, known: Iterable[str]) -> None:
    """Refuse a value that is not known; the message lists those that are.

    Raises
    ------
    FedstageError
        If it is not known.
    """
    known = list(known)
    if value not in known:
        allowed = f"use one of {', '.join(known)}{suggest(value, known)}"
        raise FedstageError(f"{key} = {value!r}: {allowed}")


# --- goals ----------------------------------------------------------------------------------------


def by_value(reach: Reach | None) -> dict[str, dict[str, float]]:
    """Return the goals of the values of an axis, written as texts; empty if there are none."""
    parts = reach.items() if isinstance(reach, dict) else ()
    return {
        axis: {as_text(value): goal for value, goal in goals.items()}
        for axis, goals in parts
        if isinstance(goals, dict)
    }


def check_goal(experiment: str, reach: Reach | None, points: Sequence[Mapping[str, Axis]]) -> None:
    """Refuse a goal that names an axis or value that no cell has, or leaves out a cell.

    Raises
    ------
    FedstageError
        If an axis or a value is in none of the experiment's points, or a point has no goal.
    """
    if not isinstance(reach, dict):
        return
    where, goals = f"{experiment}: communication.reach", by_value(reach)
    named: Cells = {axis: list(values) for axis, values in goals.items()}
    check_cells(where, experiment, named or cast(Cells, reach), points)
    for axis, values in goals.items():
        for point in points:
            if values.keys().isdisjoint(names_of(axis, point[axis])):
                told = f"{as_text(point[axis])!r}: missing; there are {', '.join(values)}"
                raise FedstageError(f"{where}.{axis}: {told}")
