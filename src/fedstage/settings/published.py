"""How the cells of an experiment's table are matched with the numbers of a paper."""

from typing import Annotated

from pydantic import Field

from fedstage.settings.base import Settings
from fedstage.settings.scores import Axis, Cells

#: Columns of the published table, or keys of its `setting`, with the values to match.
Columns = dict[str, Axis]


class PublishedCell(Settings):
    """An exception: the published row of some cells."""

    at: Annotated[Cells, Field(min_length=1)]
    """Values of axes."""
    row: Columns | None
    """The published row; null if there is none."""


class Published(Settings):
    """The published counterpart of a table."""

    paper: str
    """The paper's folder."""
    table: str
    """Name of the published table."""
    metric: str = "top1_accuracy"
    """By default the metric of the table."""
    where: Columns = {}
    """What all cells match."""
    axes: dict[str, str] = {}
    """The published column that has the values of an axis, by default `method`, `model`, `dataset`
    and `partition_alpha` for the axes `method`, `model`, `data` and `partition.alpha`.
    """
    match: dict[str, dict[Axis, Columns | None]] = {}
    """Published columns for each value of an axis; null if the paper has no such row."""
    cells: list[PublishedCell] = []
    """Exceptions: the first that names a cell overrides all that."""
