"""How the cells of an experiment's table are found among the numbers of a paper."""

from typing import Annotated

from pydantic import Field

from fedstage.settings.base import Settings
from fedstage.settings.scores import Axis, Cells

#: Columns of the published table, or keys of its `setting`, with the values wanted.
Columns = dict[str, Axis]


class PublishedCell(Settings):
    """An exception: what cells are in the published table, `row: null` for nothing."""

    at: Annotated[Cells, Field(min_length=1)]
    row: Columns | None


class Published(Settings):
    """The published counterpart of a table.

    `metric` is that of the table unless it names another. `where` says what all cells have in
    common in the published table. `axes` names, for an axis, the published column that has the same
    values; `match` says for an axis, value by value, what it is in the published table (null: the
    paper has no such row). `method`, `model`, `data` and `partition.alpha` are the columns
    `method`, `model`, `dataset` and `partition_alpha` unless `axes` or `match` says otherwise. The
    first of `cells` that names a cell is laid over all that.
    """

    paper: str
    table: str
    metric: str = "top1_accuracy"
    where: Columns = {}
    axes: dict[str, str] = {}
    match: dict[str, dict[Axis, Columns | None]] = {}
    cells: list[PublishedCell] = []
