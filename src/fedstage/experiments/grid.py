"""The values of a grid's axes, as tables and messages show them."""

from collections.abc import Mapping
from typing import Any, cast

from fedstage.config import Axis
from fedstage.merging import plain


def labels(point: Mapping[str, Any]) -> dict[str, Axis]:
    """Return the values of a point of the grid as tables show them."""
    return {axis: label(value) for axis, value in point.items()}


def label(value: Any) -> Axis:
    """Name a value of an axis; a choice with settings by its name and these."""
    return _written(plain("", value))


def short_name(value: Any) -> Any:
    """Return a value of an axis, the name of one that is a choice with settings, a list as text."""
    if isinstance(value, Mapping):
        return value.get("name", next(iter(value), None))
    return _written(value)


def _written(value: Any) -> Axis:
    if isinstance(value, list):
        return " ".join(str(_written(inner)) for inner in value)
    if not isinstance(value, Mapping):
        return cast(Axis, value)
    return " ".join(f"{key} {_written(inner)}" for key, inner in value.items())
