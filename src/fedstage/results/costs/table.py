"""The table of what each method reaches and what that costs, a row a method."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from statistics import fmean

import pyarrow as pa

from fedstage.results.intervals import confidence_interval
from fedstage.results.metrics import arrow_type, spread
from fedstage.results.runs_file import SEED
from fedstage.results.tables.exact import Cell
from fedstage.results.tables.labels import (
    NOTHING,
    head_of,
    human_bytes,
    mean_and_std,
    show_value,
    signed,
)
from fedstage.settings.scores import Axis, Metric

_MIB = 2**20
_MEASURED = ("score", "bytes", "clients_s", "server_s", "memory_bytes")


@dataclass(frozen=True)
class RunCost:
    """What a run reaches in percent, and what it costs: bytes and seconds until training ends."""

    settings: Mapping[str, Axis]  # its value on every axis
    score: float
    bytes: float  # that the mean client sends and receives
    clients_s: float  # of all clients, one after the other
    server_s: float
    memory_bytes: float  # that prediction needs


def exact_rows(runs: Sequence[RunCost]) -> list[dict[str, Cell]]:
    """Return a row a run."""
    return [{**run.settings, **{name: getattr(run, name) for name in _MEASURED}} for run in runs]


def exact_schema(rows: Sequence[Mapping[str, Cell]]) -> pa.Schema:
    """Return the typed columns of these rows."""
    return pa.schema(
        (name, pa.float64() if name in _MEASURED else arrow_type(row[name] for row in rows))
        for name in rows[0]
    )


def shown_rows(
    runs: Sequence[RunCost], rows: Sequence[str], columns: Sequence[str], metric: Metric
) -> list[dict[str, str]]:
    """Return a row a place on all axes but the seed, those of one column below one another.

    Each is compared with the first of its column, paired over the seeds that both have.
    """
    by_place: dict[tuple[Axis, ...], list[RunCost]] = {}
    for run in runs:
        place = tuple(run.settings[axis] for axis in (*columns, *rows))
        by_place.setdefault(place, []).append(run)
    first: dict[tuple[Axis, ...], list[RunCost]] = {}
    shown: dict[tuple[Axis, ...], list[dict[str, str]]] = {}
    for place, same in by_place.items():
        column = place[: len(columns)]
        reference = first.setdefault(column, same)
        axes = dict(zip((*columns, *rows), place, strict=True))
        row = {axis: show_value(axes[axis]) for axis in (*columns, *rows)}
        shown.setdefault(column, []).append(row | _texts(same, reference, metric))
    return [row for column in shown.values() for row in column]


def _texts(same: Sequence[RunCost], first: Sequence[RunCost], metric: Metric) -> dict[str, str]:
    scores = [run.score for run in same]
    return {
        head_of(metric): mean_and_std(fmean(scores), spread(scores)),
        "Beside the first": NOTHING if same is first else _difference(same, first),
        "Bytes": human_bytes(round(fmean(run.bytes for run in same))),
        "Clients (s)": _seconds(run.clients_s for run in same),
        "Server (s)": _seconds(run.server_s for run in same),
        "Memory (MiB)": f"{fmean(run.memory_bytes for run in same) / _MIB:.2f}",
    }


def _seconds(values: Iterable[float]) -> str:
    mean = fmean(values)
    return f"{mean:.{2 if mean < 10 else 1 if mean < 100 else 0}f}"


def _difference(same: Sequence[RunCost], first: Sequence[RunCost]) -> str:
    """Return the mean difference of scores and its 95 % interval, paired over seeds."""
    by_seed = {run.settings[SEED]: run.score for run in first}
    pairs = [run.score - by_seed[seed] for run in same if (seed := run.settings[SEED]) in by_seed]
    found = confidence_interval(pairs)
    if isnan(found.mean):
        return NOTHING
    mean = signed(found.mean)
    return mean if isnan(found.low) else f"{mean} [{signed(found.low)}, {signed(found.high)}]"


def legend(metric: Metric) -> dict[str, str]:
    """Return the explanation of each column."""
    return {
        head_of(metric): "after training, mean ± standard deviation (n−1) over seeds.",
        "Beside the first": (
            "the difference to the first row of its column, paired over seeds, with the 95 % "
            "interval of each comparison by itself (Student's t)."
        ),
        "Bytes": "that the mean client sends and receives until training ends (1 kB = 1000 B).",
        "Clients (s)": (
            "seconds of computing of all clients, one after the other, without evaluation; mean "
            "over seeds. What several methods share counts in full for each."
        ),
        "Server (s)": "the same of the server: aggregation, logits, students, generated images.",
        "Memory (MiB)": "of all that must be held to predict (1 MiB = 2^20 B).",
    }
