"""The result table: the last evaluated round of each run, averaged over seeds."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
import pyarrow as pa

from fedstage.errors import FedstageError
from fedstage.results.tables.labels import METRICS
from fedstage.results.tables.runs import (
    AS_RELEASED,
    AS_RELEASED_STD,
    METRICS_FILE,
    PUBLISHED,
    PUBLISHED_SEEDS,
    PUBLISHED_STD,
    SEED,
    last_rounds,
)
from fedstage.settings.scores import Metric

#: The measured columns of a table, behind that of its metric: the mean over seeds. Metrics and
#: deviations are in percent.
VALUES = pa.schema(
    [
        pa.field("std", pa.float64()),  # deviation over seeds (n-1), null for one seed
        pa.field("seeds", pa.int64()),  # number of seeds
        pa.field("client_std", pa.float64()),  # these three: means over seeds of the columns of
        pa.field("own_mean", pa.float64()),  # the metrics; client_std null where all clients share
        pa.field("own_std", pa.float64()),  # one model
        pa.field("bytes_up", pa.int64()),  # per participant and round, mean over seeds
        pa.field("bytes_down", pa.int64()),
        pa.field("rounds", pa.int64()),  # the round that the row is of: the last evaluated one
    ]
)

#: Further columns where the experiment has a published counterpart; null where the paper has none.
COMPARED = pa.schema(
    [
        pa.field(PUBLISHED, pa.float64()),  # the paper's mean
        pa.field(PUBLISHED_STD, pa.float64()),  # what follows its ± sign
        pa.field(PUBLISHED_SEEDS, pa.int64()),  # runs behind it
        pa.field("difference", pa.float64()),  # measured minus published, in percentage points
    ]
)

#: Further columns where an experiment asks for the maximum: what some released code reports.
RELEASED = pa.schema(
    [
        pa.field(AS_RELEASED, pa.float64()),  # the highest of all evaluated rounds, mean over seeds
        pa.field(AS_RELEASED_STD, pa.float64()),  # deviation over seeds (n-1)
    ]
)

_ARROW_TYPES = {
    "Int64": pa.int64(),
    "Float64": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
}


def summarise(
    frame: pd.DataFrame, axes: Sequence[str], metric: Metric = "top1_accuracy"
) -> pd.DataFrame:
    """Average the last evaluated round of each run over seeds.

    Parameters
    ----------
    frame : pandas.DataFrame
        The runs, as `read_runs` returns them.
    axes : sequence of str
        The axes of the table's rows, then of its columns.
    metric : str
        What the table is of.

    Returns
    -------
    pandas.DataFrame
        A row a combination of `axes`, in the order of first appearance, with the columns `axes`,
        `metric`, `VALUES`, `COMPARED` where the frame has published numbers and `RELEASED` where it
        has maxima. An axis called ``rounds`` stands for the column of that name.

    Raises
    ------
    FedstageError
        If the seeds of one row ended in different rounds.
    """
    cells = last_rounds(frame).groupby(list(axes), sort=False, dropna=False)
    rows = [
        dict(zip(axes, key, strict=True)) | _average(cell, _place(axes, key), metric)
        for key, cell in cells
    ]
    table = pd.DataFrame(rows, columns=table_schema(frame, axes, metric).names)
    types = {axis: frame[axis].dtype for axis in axes}
    if is_compared(frame):
        types |= {name: frame[name].dtype for name in (PUBLISHED, PUBLISHED_STD, PUBLISHED_SEEDS)}
    return table.astype({metric: "float64", "client_std": "float64", **types})


def is_compared(frame: pd.DataFrame) -> bool:
    """Whether published numbers stand in a frame of runs, or in a table."""
    return PUBLISHED in frame


def is_released(frame: pd.DataFrame) -> bool:
    """Whether the highest of all rounds stands in a frame of runs, or in a table."""
    return AS_RELEASED in frame


def metric_of(table: pd.DataFrame) -> Metric:
    """Return what a table that `summarise` made is of."""
    return next(metric for metric in METRICS if metric in table)


def table_schema(
    frame: pd.DataFrame, axes: Sequence[str], metric: Metric = "top1_accuracy"
) -> pa.Schema:
    """Return the columns of a table, typed: its axes, and the values that are not among them."""
    keys = [pa.field(axis, _ARROW_TYPES[str(frame[axis].dtype)]) for axis in axes]
    own = pa.field(metric, pa.float64())
    values = [own, *VALUES, *(COMPARED if is_compared(frame) else [])]
    values += RELEASED if is_released(frame) else []
    return pa.schema([*keys, *(field for field in values if field.name not in axes)])


def _average(cell: pd.DataFrame, place: str, metric: Metric) -> dict[str, Any]:
    """Return the values of one row from the last rounds of its seeds."""
    _check_one_length(cell, place)
    return {
        metric: cell[metric].mean(),
        "std": cell[metric].std(ddof=1),
        "seeds": len(cell),
        **{name: cell[name].mean() for name in ("client_std", "own_mean", "own_std")},
        **{name: round(cell[name].mean()) for name in ("bytes_up", "bytes_down")},
        "rounds": cell["round"].iloc[0],
        **(_compare(cell, metric) if is_compared(cell) else {}),
        **(_maxima(cell) if is_released(cell) else {}),
    }


def _compare(cell: pd.DataFrame, metric: Metric) -> dict[str, Any]:
    """Return the published values of one row, which all of its seeds share."""
    published = {name: cell[name].iloc[0] for name in (PUBLISHED, PUBLISHED_STD, PUBLISHED_SEEDS)}
    return {**published, "difference": cell[metric].mean() - cell[PUBLISHED].iloc[0]}


def _maxima(cell: pd.DataFrame) -> dict[str, Any]:
    return {AS_RELEASED: cell[AS_RELEASED].mean(), AS_RELEASED_STD: cell[AS_RELEASED].std(ddof=1)}


def _check_one_length(cell: pd.DataFrame, place: str) -> None:
    """Refuse to average what was measured in different rounds."""
    if cell["round"].nunique() > 1:
        ends = ", ".join(
            f"round {last} (seed {seed}, {file})"
            for last, seed, file in zip(cell["round"], cell[SEED], cell[METRICS_FILE], strict=True)
        )
        raise FedstageError(f"{place}: the seeds end in {ends}: must be one and the same round")


def _place(axes: Sequence[str], key: Sequence[Any]) -> str:
    return ", ".join(f"{axis} = {value}" for axis, value in zip(axes, key, strict=True))
