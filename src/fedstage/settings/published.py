"""How the cells of an experiment's table are matched with the numbers of a paper."""

from fedstage.settings.base import Settings
from fedstage.settings.scores import Axis

#: Columns of the published table, or keys of its `setting`, with the values to match.
Columns = dict[str, Axis]


class Published(Settings):
    """The published counterpart of a table."""

    paper: str
    """Name of the paper's folder."""
    table: str
    """Name of the published table."""
    metric: str = "top1_accuracy"
    """Metric of the published numbers; by default the metric of the table."""
    where: Columns = {}
    """Columns with the values that all cells match."""
    axes: dict[str, str] = {}
    """Published column that contains the values of an axis; by default `method`, `model`, `dataset`
    and `partition_alpha` for the axes `method`, `model`, `data` and `partition.alpha`.
    """
    match: dict[str, dict[Axis, Columns | None]] = {}
    """Published columns, with the values to match, for each value of an axis; null if the paper has
    no such row.
    """
