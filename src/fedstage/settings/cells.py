"""Cells of a table, those with a value, or several, on some of its axes; and names of runs."""

from collections.abc import Mapping, Sequence
from urllib.parse import quote_plus

from fedstage.errors import FedstageError
from fedstage.settings.base import CHOICES
from fedstage.settings.scores import Axis, Cells
from fedstage.settings.validation import suggest


def as_text(value: Axis) -> str:
    """Write a value so that equal ones are the same: 1, 1.0 and ``"1.0"`` are ``1``."""
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return "none"
    try:
        return f"{float(value):.12g}"
    except ValueError:
        return str(value)


def names_of(axis: str, value: Axis) -> tuple[str, ...]:
    """Return the texts that name a value of an axis.

    A choice with settings, such as ``cifar10 train_size 5000``, can be given by its name, too.
    """
    text = as_text(value)
    if axis.rpartition(".")[2] not in CHOICES or " " not in text:
        return (text,)
    return text, text.removeprefix("name ").split(" ")[0]


def selects(cells: Cells, axes: Mapping[str, Axis]) -> bool:
    """Whether a point of a grid is among the cells; it must have all of their axes."""
    return all(
        axis in axes and not _texts(wanted).isdisjoint(names_of(axis, axes[axis]))
        for axis, wanted in cells.items()
    )


def check_cells(
    where: str,
    experiment: str,
    cells: Cells,
    points: Sequence[Mapping[str, Axis]],
    *,
    seeds: bool = False,
) -> None:
    """Refuse cells that name an unknown axis or value of an experiment, or a seed unless `seeds`.

    Raises
    ------
    FedstageError
        If an axis or a value is in none of the points, or if `seed` is named without `seeds`.
    """
    for axis, wanted in cells.items():
        known = dict.fromkeys(str(point[axis]) for point in points if axis in point)
        if not known or (axis == "seed" and not seeds):
            axes = dict.fromkeys(key for point in points for key in point)
            raise FedstageError(
                f"{where}: {axis}: no axis of {experiment}; use one of {', '.join(axes)}"
                f"{suggest(axis, axes)}"
            )
        for value in wanted if isinstance(wanted, list) else [wanted]:
            if not any(selects({axis: value}, point) for point in points):
                raise FedstageError(
                    f"{where}: {axis} = {value!r}: no cell of {experiment}; "
                    f"use one of {', '.join(known)}{suggest(value, known)}"
                )


def show_point(axes: Mapping[str, Axis]) -> str:
    """Write a point for messages: ``method = fedavg, partition.alpha = 0.1``."""
    return ", ".join(f"{axis} = {as_text(value)}" for axis, value in axes.items())


def _texts(wanted: Axis | list[Axis]) -> set[str]:
    return {as_text(value) for value in (wanted if isinstance(wanted, list) else [wanted])}


# --- names of runs --------------------------------------------------------------------------------

_OWN = ("method", "seed")


def run_name(axes: Mapping[str, Axis]) -> str:
    """Return the path of a run: ``feddf/partition.alpha=0.1,data=cifar10/seed_0``.

    Values are quoted as in URLs, so that all names are distinct and valid names of folders.
    """
    further = [f"{axis}={_quoted(value)}" for axis, value in axes.items() if axis not in _OWN]
    place = [_quoted(axes["method"]), *([",".join(further)] if further else [])]
    return "/".join([*place, f"seed_{_quoted(axes['seed'])}"])


def _quoted(value: object) -> str:
    text = quote_plus(str(value), safe="")
    return text if text.strip(".") else text.replace(".", "%2E")  # no folder above
