"""Which cells of a table are meant: a value, or several, on some of its axes."""

from collections.abc import Mapping

from fedstage.config import CHOICES, Axis, Cells


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

    A choice with settings, such as ``cifar10 train_size 5000``, goes by its name too.
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


def show_point(axes: Mapping[str, Axis]) -> str:
    """Write a point for messages: ``method = fedavg, partition.alpha = 0.1``."""
    return ", ".join(f"{axis} = {as_text(value)}" for axis, value in axes.items())


def _texts(wanted: Axis | list[Axis]) -> set[str]:
    return {as_text(value) for value in (wanted if isinstance(wanted, list) else [wanted])}
