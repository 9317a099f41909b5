"""The result table: the last evaluated round of each run, averaged over seeds."""

from collections.abc import Iterator, Sequence
from math import nan
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from fedstage.errors import FedstageError
from fedstage.experiments.runs_file import SEED
from fedstage.results.intervals import welch_interval
from fedstage.results.tables.labels import METRICS, join_labels
from fedstage.results.tables.measured import AS_RELEASED, PRIVATE
from fedstage.results.tables.runs import (
    AS_RELEASED_STD,
    DIFFERENCE_HIGH,
    DIFFERENCE_LOW,
    DTYPES,
    METRICS_FILE,
    PUBLISHED,
    PUBLISHED_SEEDS,
    PUBLISHED_STD,
    last_rounds,
)
from fedstage.settings.scores import Axis, Metric

#: The measured columns of a table after its metric, which is a mean over seeds. Metrics and
#: deviations are in percent.
VALUES = pa.schema(
    [
        pa.field("std", pa.float64()),  # deviation over seeds (n-1), null for one seed
        pa.field("seeds", pa.int64()),  # number of seeds
        pa.field("client_std", pa.float64()),  # null where all clients share one model
        # Like the next four, the mean over seeds of the metrics' column.
        pa.field("own_test_mean", pa.float64()),
        pa.field("own_test_std", pa.float64()),
        pa.field("own_mean", pa.float64()),
        pa.field("own_std", pa.float64()),
        pa.field("bytes_up", pa.int64()),  # per participant and round, mean over seeds
        pa.field("bytes_down", pa.int64()),
        pa.field("rounds", pa.int64()),  # the last evaluated round
    ]
)

#: Further columns of an experiment with a published counterpart; null where the paper has none.
COMPARED = pa.schema(
    [
        pa.field(PUBLISHED, pa.float64()),  # the paper's mean
        pa.field(PUBLISHED_STD, pa.float64()),  # the number after its ± sign
        pa.field(PUBLISHED_SEEDS, pa.int64()),  # runs behind it
        pa.field("difference", pa.float64()),  # measured minus published, in percentage points
        pa.field(DIFFERENCE_LOW, pa.float64()),  # its 95 % confidence interval (Welch), if both
        pa.field(DIFFERENCE_HIGH, pa.float64()),  # have a deviation over several seeds
    ]
)

#: Further columns of an experiment with `also: [maximum]`, which some released code reports.
RELEASED = pa.schema(
    [
        pa.field(AS_RELEASED, pa.float64()),  # the highest of all evaluated rounds, mean over seeds
        pa.field(AS_RELEASED_STD, pa.float64()),  # deviation over seeds (n-1)
    ]
)

#: Measurements over clients; null if they do not apply.
_OF_CLIENTS = ("client_std", "own_test_mean", "own_test_std", "own_mean", "own_std")
_ARROW_TYPES = {dtype: kind for kind, dtype in DTYPES.items()}


def summarise(
    frame: pd.DataFrame, axes: Sequence[str], metric: Metric = "top1_accuracy"
) -> pd.DataFrame:
    """Average the last evaluated round of each run over seeds.

    `frame` has the runs, as `read_runs` returns them. The table has one row per combination of
    `axes`, ordered by each of them in turn, its values as they first appear, and the columns of
    `table_schema`. An axis called ``rounds`` replaces the column of that name.

    Raises
    ------
    FedstageError
        If the seeds of one row ended in different rounds.
    """
    rows = [
        dict(zip(axes, key, strict=True)) | _average(cell, join_labels(axes, key), metric)
        for key, cell in _cells(frame, axes)
    ]
    table = pd.DataFrame(rows, columns=table_schema(frame, axes, metric).names)
    types = {axis: frame[axis].dtype for axis in axes}
    if is_compared(frame):
        types |= {name: frame[name].dtype for name in (PUBLISHED, PUBLISHED_STD, PUBLISHED_SEEDS)}
    return table.astype({**dict.fromkeys((metric, *_OF_CLIENTS), "float64"), **types})


def values_by_seed(
    frame: pd.DataFrame, axes: Sequence[str], metric: Metric = "top1_accuracy"
) -> list[dict[Axis, float]]:
    """Return the values behind the mean of each row of `summarise`, by seed."""
    cells = _cells(frame, axes)
    return [dict(zip(cell[SEED], cell[metric], strict=True)) for _, cell in cells]


def _cells(
    frame: pd.DataFrame, axes: Sequence[str]
) -> Iterator[tuple[tuple[Any, ...], pd.DataFrame]]:
    """Yield the values on axes of each row of the table, and the last rounds of its seeds.

    Rows are ordered by the first axis, then by the second, and so on, so that blocks stay together.
    """
    last = last_rounds(frame)
    codes = [pd.factorize(last[axis], use_na_sentinel=False)[0] for axis in axes]
    ordered = last.iloc[np.lexsort(codes[::-1])]
    yield from ordered.groupby(list(axes), sort=False, dropna=False)


def is_compared(frame: pd.DataFrame) -> bool:
    """Whether a frame of runs, or a table, has published numbers."""
    return PUBLISHED in frame


def is_released(frame: pd.DataFrame) -> bool:
    """Whether a frame of runs, or a table, has the highest of all rounds."""
    return AS_RELEASED in frame


def is_private(frame: pd.DataFrame) -> bool:
    """Whether a frame of runs, or a table, has epsilon of differential privacy."""
    return "delta" in frame


def metric_of(table: pd.DataFrame) -> Metric:
    """Return the metric of a table that `summarise` made."""
    return next(metric for metric in METRICS if metric in table)


def table_schema(
    frame: pd.DataFrame, axes: Sequence[str], metric: Metric = "top1_accuracy"
) -> pa.Schema:
    """Return the typed columns of a table: its axes, and the values that are not among them."""
    keys = [pa.field(axis, _ARROW_TYPES[str(frame[axis].dtype)]) for axis in axes]
    values = [pa.field(metric, pa.float64()), *VALUES]
    values += COMPARED if is_compared(frame) else []
    values += RELEASED if is_released(frame) else []
    values += [field for field in PRIVATE if field.name in frame]
    return pa.schema([*keys, *(field for field in values if field.name not in axes)])


def _average(cell: pd.DataFrame, place: str, metric: Metric) -> dict[str, Any]:
    """Return the values of one row from the last rounds of its seeds."""
    _check_one_length(cell, place)
    values: dict[str, Any] = {
        metric: cell[metric].mean(),
        "std": cell[metric].std(ddof=1),
        "seeds": len(cell),
        **{name: cell[name].astype("float64").mean() for name in _OF_CLIENTS},
        **{name: round(cell[name].mean()) for name in ("bytes_up", "bytes_down")},
        "rounds": cell["round"].iloc[0],
    }
    if is_compared(cell):  # all seeds share the published values
        shared = (PUBLISHED, PUBLISHED_STD, PUBLISHED_SEEDS)
        values |= {name: cell[name].iloc[0] for name in shared}
        values["difference"] = values[metric] - values[PUBLISHED]
        values |= zip((DIFFERENCE_LOW, DIFFERENCE_HIGH), _interval(values, metric), strict=True)
    if is_released(cell):
        values[AS_RELEASED] = cell[AS_RELEASED].mean()
        values[AS_RELEASED_STD] = cell[AS_RELEASED].std(ddof=1)
    private = filter(cell.__contains__, PRIVATE.names)  # the worst of the seeds
    values |= {name: cell[name].max(skipna=False) for name in private}
    return values


def _interval(values: dict[str, Any], metric: Metric) -> tuple[float, float]:
    """Return the interval of measured minus published, or nan."""
    if pd.isna(values[PUBLISHED_SEEDS]) or pd.isna(values[PUBLISHED_STD]):
        return nan, nan
    published = values[PUBLISHED], values[PUBLISHED_STD], int(values[PUBLISHED_SEEDS])
    return welch_interval((values[metric], values["std"], values["seeds"]), published)


def _check_one_length(cell: pd.DataFrame, place: str) -> None:
    """Refuse to average the scores of different rounds."""
    if cell["round"].nunique() > 1:
        ends = ", ".join(
            f"round {last} (seed {seed}, {file})"
            for last, seed, file in zip(cell["round"], cell[SEED], cell[METRICS_FILE], strict=True)
        )
        raise FedstageError(f"{place}: the seeds end in {ends}: must be one and the same round")
