"""The values of a grid's axes, as tables and messages show them."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, cast

from fedstage.settings.experiments import Values
from fedstage.settings.merging import plain
from fedstage.settings.scores import Axis


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
    """Return all points of a grid, the last axis the fastest."""
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


def label(value: Any) -> Axis:
    """Return the text of a value of an axis; of a choice, its name and settings."""
    return _written(plain("", value))


def short_name(value: Any) -> Any:
    """Return a value of an axis: of a choice with settings its name, of a list its text."""
    if isinstance(value, Mapping):
        return value.get("name", next(iter(value), None))
    return _written(value)


def _written(value: Any) -> Axis:
    if isinstance(value, list):
        return " ".join(str(_written(inner)) for inner in value)
    if not isinstance(value, Mapping):
        return cast(Axis, value)
    return " ".join(f"{key} {_written(inner)}" for key, inner in value.items())
