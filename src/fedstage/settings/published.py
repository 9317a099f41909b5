"""How the cells of an experiment's table are matched with the numbers of a paper."""

from typing import Annotated

from pydantic import Field

from fedstage.settings.base import Settings
from fedstage.settings.scores import Axis, Cells

#: Columns of the published table, or keys of its `setting`, with the values to match.
Columns = dict[str, Axis]


class PublishedCell(Settings):
    """An exception: the published row of some cells; `row: null` if there is none."""

    at: Annotated[Cells, Field(min_length=1)]
    row: Columns | None


class Published(Settings):
    """The published counterpart of a table.

    `metric` is by default that of the table. All cells match `where`. `axes` maps an axis to the
    published column of the same values, and `match` each value of an axis to published columns
    (null: the paper has no such row). By default the axes `method`, `model`, `data` and
    `partition.alpha` are the columns `method`, `model`, `dataset` and `partition_alpha`. The first
    of `cells` that names a cell overrides all that.
    """

    paper: str
    table: str
    metric: str = "top1_accuracy"
    where: Columns = {}
    axes: dict[str, str] = {}
    match: dict[str, dict[Axis, Columns | None]] = {}
    cells: list[PublishedCell] = []
