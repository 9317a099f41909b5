"""Tables of accuracies by client and by class, with the names that the data give them."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from fedstage.results.clients.columns import CLASS, OWN_MIX, VALIDATION
from fedstage.results.figures.names import Names, name_of
from fedstage.results.metrics import spread
from fedstage.results.runs_file import SEED, ExperimentRun
from fedstage.results.tables.exact import Cell
from fedstage.results.tables.labels import NOTHING, join_labels, mean_and_std
from fedstage.storage.tables import load_table

COLUMNS = ("of", "client", "client_name", "label", "class_name", "samples", "accuracy")

_HEADS = {VALIDATION: "own validation samples", OWN_MIX: "own mix of classes"}
NOTES = {
    OWN_MIX: (
        "**own mix of classes**: accuracy on test samples, each class weighted by the client's "
        "training samples of it (%)."
    ),
    VALIDATION: "**own validation samples**: accuracy on the client's own, set aside (%).",
    CLASS: "Accuracy on the test samples of a class (%).",
}

#: A run's value on every axis, and a row of its accuracies.
Measured = tuple[Mapping[str, Any], Mapping[str, Any]]


def read_clients(runs: Sequence[ExperimentRun]) -> list[Measured]:
    """Return the accuracies of all runs, each with the settings of its run."""
    return [
        (run.settings, row)
        for run in runs
        for row in load_table((run.clients or [])[run.which()]).to_pylist()
    ]


def exact_rows(
    measured: Sequence[Measured], axes: Sequence[str], names: Names
) -> list[dict[str, Cell]]:
    """Return a row for each run, client and kind of accuracy, and for each run and class."""
    return [
        {axis: settings[axis] for axis in (*axes, SEED)} | _named(row, names)
        for settings, row in measured
    ]


def _named(row: Mapping[str, Any], names: Names) -> dict[str, Cell]:
    client, label = row["client"], row["label"]
    named = {
        "client_name": None if client is None else name_of(client, names.clients),
        "class_name": None if label is None else name_of(label, names.classes),
    }
    return {column: (dict(row) | named)[column] for column in COLUMNS}


def client_rows(
    measured: Sequence[Measured], axes: Sequence[str], names: Names
) -> list[dict[str, str]]:
    """Return a row a client for people: its name, and a column a place and kind of accuracy."""
    rows: dict[int, dict[str, str]] = {}
    for of, head in _HEADS.items():
        for client, cells in _by_place(measured, axes, of, "client").items():
            row = rows.setdefault(client, {"Client": name_of(client, names.clients)})
            row |= {f"{place}: {head}" if place else head: text for place, text in cells.items()}
    return _whole([rows[client] for client in sorted(rows)])


def class_rows(
    measured: Sequence[Measured], axes: Sequence[str], names: Names
) -> list[dict[str, str]]:
    """Return a row a class for people: its name, and a column a place."""
    found = _by_place(measured, axes, CLASS, "label")
    return _whole(
        [
            {"Class": name_of(label, names.classes)}
            | {place or "accuracy": text for place, text in cells.items()}
            for label, cells in sorted(found.items())
        ]
    )


def _by_place(
    measured: Sequence[Measured], axes: Sequence[str], of: str, key: str
) -> dict[int, dict[str, str]]:
    """Return means over seeds by client or class, and then by place."""
    values: dict[int, dict[str, list[float]]] = {}
    for settings, row in measured:
        if row["of"] == of and row["accuracy"] is not None:
            place = join_labels(axes, [settings[axis] for axis in axes])
            values.setdefault(row[key], {}).setdefault(place, []).append(row["accuracy"])
    return {
        number: {place: mean_and_std(fmean(of), spread(of)) for place, of in by_place.items()}
        for number, by_place in values.items()
    }


def _whole(rows: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """Return rows that all have the columns of any."""
    heads = dict.fromkeys(head for row in rows for head in row)
    return [{head: row.get(head, NOTHING) for head in heads} for row in rows]
