"""The two tidy files of an experiment at a scale: its scores, one row per value, and its costs.

Both are Parquet with all axes of the grid as columns; what is the same for many rows takes no
space there. What describes the experiment stands once, in a header that `pandas.read_parquet`
returns as `attrs`. Everything that is shown of an experiment is made from these two files.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa

from fedstage.errors import FedstageError
from fedstage.settings.base import Settings
from fedstage.settings.cells import as_text
from fedstage.settings.experiments import Bands, Style
from fedstage.settings.scores import Axis, Metric, Number, Reach, Regime
from fedstage.settings.validation import validate
from fedstage.storage.tables import frame_of, load_foreign_table, load_table, save_table

SEED, METHOD = "seed", "method"
#: What a score is: the models and samples, the round, and a column of the metrics, or a measure of
#: the run as a whole, which stands in its last round.
WHAT = ("evaluated", "role", "round", "measure")
#: What is the same for all scores of a run: a digest of its settings without the seed, the commit
#: or version of the source, the machine, and the seconds of its jobs.
ORIGIN = ("settings", "source", "machine", "seconds")
#: What a row of costs is about, and its numbers. Seconds are the sum of a stage's jobs; the median
#: and the quartiles are of its jobs in a round together. Bytes are the mean client's.
COST = ("stage", "side")
COSTS = (
    *("jobs", "rounds", "seconds", "median_s", "low_s", "high_s"),
    *("bytes_up", "bytes_down", "everyone", "memory_bytes"),
)

_ATTRS = b"PANDAS_ATTRS"  # where pandas keeps a frame's attributes
_TYPES = {"round": pa.int32(), "value": pa.float64(), "seconds": pa.float64()}
_TYPES |= dict.fromkeys(COSTS, pa.float64())
#: The types of columns that may have gaps.
_NULLABLE = {pa.bool_(): "boolean", pa.int64(): "Int64", pa.float64(): "Float64"}


class CellHeader(Settings):
    """A cell of the grid: all runs that differ only in their seed.

    `published` has the paper's numbers by metric; memory in MiB, parameters sent until a goal is
    reached, and what is sent relative to FedAvg are the paper's, too.
    """

    axes: dict[str, Axis]
    training: str
    role: str = "test"
    published: dict[str, Number] = {}
    memory_mib: float | None = None
    params: float | None = None
    ratio: float | None = None

    @property
    def federated(self) -> bool:
        """Whether its methods are ranked, unlike pooled training and each client alone."""
        return self.training in ("federated", "one_shot")


class Header(Settings):
    """What describes an experiment at a scale.

    `published` names a paper's table, and `published_at` and `measured_at` are the two settings.
    """

    experiment: str
    scale: str
    title: str
    rows: list[str]
    columns: list[str] = []
    metric: Metric = "top1_accuracy"
    also: list[str] = []
    over: str | None = None
    baseline: str | None = None
    notes: list[str] = []
    bands: Bands = "interval"
    labels: dict[str, str] = {}
    styles: dict[str, Style] = {}
    reach: Reach | None = None
    regime: Regime | None = None
    published: str | None = None
    published_at: str = ""
    measured_at: str = ""
    published_memory: str | None = None
    published_params: str | None = None
    published_ratio: str | None = None
    cells: list[CellHeader]

    @property
    def axes(self) -> list[str]:
        """All axes of the grid but the seed."""
        return list(dict.fromkeys(axis for cell in self.cells for axis in cell.axes))

    @property
    def shown(self) -> list[str]:
        """The axes of the table."""
        return [*self.rows, *self.columns]

    @property
    def target(self) -> str:
        """The name for messages and files."""
        return f"{self.experiment}/{self.scale}"


class Tidy(NamedTuple):
    """The rows of a tidy file, and its header."""

    frame: pd.DataFrame
    header: Header

    @property
    def run(self) -> list[str]:
        """The columns that identify a run."""
        return [*self.header.axes, SEED]


def arrow_type(values: Sequence[Any]) -> pa.DataType:
    """Return the type of a column of axes; texts and mixed values are strings."""
    kinds = {type(value) for value in values if value is not None and value is not pd.NA}
    for type_of, found in ((pa.bool_(), {bool}), (pa.int64(), {int}), (pa.float64(), {int, float})):
        if kinds and kinds <= found:
            return type_of
    return pa.string()


def typed(values: Sequence[Any]) -> "pd.Series[Any]":
    """Return values of an axis in the narrowest type that holds them all, with gaps."""
    kind = arrow_type(values)
    if kind == pa.string():
        values = [None if value is None else str(value) for value in values]
    return pd.Series(values, dtype=_NULLABLE.get(kind, "string"))


def write_tidy(path: Path, tidy: Tidy) -> None:
    """Write rows, in the order in which they are, and their header."""
    columns = {str(name): column.tolist() for name, column in tidy.frame.items()}
    columns = {name: [None if pd.isna(v) else v for v in of] for name, of in columns.items()}
    attrs = tidy.header.model_dump(mode="json", exclude_defaults=True)
    schema = pa.schema(
        [(name, _TYPES.get(name) or arrow_type(of)) for name, of in columns.items()],
        metadata={_ATTRS: json.dumps(attrs, sort_keys=True).encode()},
    )
    save_table(path, columns, schema)


def read_tidy(path: Path, *, sealed: bool = True) -> Tidy:
    """Read a tidy file; one that was copied from its place is not `sealed`.

    Raises
    ------
    FedstageError
        If the file is missing, damaged or has no header.
    """
    table = load_table(path) if sealed else load_foreign_table(path)
    attrs = (table.schema.metadata or {}).get(_ATTRS)
    if attrs is None:
        raise FedstageError(f"{path}: has no header; not a tidy file of results")
    header = validate(Header, json.loads(attrs), str(path))
    frame = frame_of(table).reset_index(drop=True)  # of joined files it is not unique
    axes = {axis: typed(table[axis].to_pylist()) for axis in [*header.axes, SEED]}
    return Tidy(frame.assign(**axes), header)


# --- what is asked of scores ----------------------------------------------------------------------


def by_round(scores: Tidy, *, role: str | None = None) -> pd.DataFrame:
    """Return one row for each run and evaluated round, with a column for each measure.

    Runs are in the order of the grid. `role` are other samples than the table has, such as
    ``validation``; runs without scores on them have no rows.
    """
    frame, header, run = scores.frame, scores.header, scores.run
    number = frame.groupby(run, sort=False, dropna=False).ngroup()
    wanted = [role or cell.role for cell in header.cells]
    if len(set(wanted)) > 1 and "role" not in header.shown:
        raise FedstageError(
            f"{header.target}: role = {' and '.join(dict.fromkeys(wanted))}: one role is allowed, "
            "or make role a row or column"
        )
    named = frame.assign(_run=number)
    if "role" not in header.axes:
        named = named[named["role"] == wanted[0]]
    named = named[named["client"].isna() & named["label"].isna()] if "client" in named else named
    values = named.pivot(index=["_run", "round"], columns="measure", values="value")
    values = values.drop(columns=values.columns.intersection(run))  # an axis such as participants
    about = [*run, *(name for name in ("evaluated", *ORIGIN) if name not in run)]
    constant = named.drop_duplicates("_run").set_index("_run")[about]
    found = values.reset_index("round").join(constant)
    found.columns.name = None
    first = [*run, "round"]
    return found[[*first, *found.columns.difference(first, sort=False)]].reset_index(drop=True)


def last_rounds(scores: Tidy) -> pd.DataFrame:
    """Return the last evaluated round of each run, as `by_round` has it."""
    rounds = by_round(scores)
    return rounds.groupby(scores.run, sort=False, dropna=False).tail(1).reset_index(drop=True)


def cell_numbers(header: Header, frame: pd.DataFrame) -> list[int]:
    """Return, for each row of a frame with all axes, the position of its cell in the header."""
    axes = header.axes
    places = {
        place_of([cell.axes[axis] for axis in axes]): i for i, cell in enumerate(header.cells)
    }
    rows = frame[axes].astype(object).itertuples(index=False, name=None)
    return [places[place_of(row)] for row in rows]


def place_of(values: Iterable[Any]) -> tuple[str, ...]:
    """Return values of axes as texts, the same for equal ones."""
    return tuple(as_text(None if pd.isna(value) else value) for value in values)
