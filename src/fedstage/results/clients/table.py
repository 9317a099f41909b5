"""Tables of accuracies by client and by class, with the names that the data give them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fedstage.results.clients.columns import CLASS, OWN_MIX, VALIDATION
from fedstage.results.figures.names import Names, name_of
from fedstage.results.runs_file import SEED, ExperimentRun
from fedstage.results.tables.columns import TextTable, with_deviation
from fedstage.results.tables.exact import Cell
from fedstage.results.tables.labels import join_labels
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

#: Accuracies of a client or class by its number, by the heads of columns.
Cells = dict[str, dict[int, list[float]]]
_SHOW = with_deviation()

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


def client_table(measured: Sequence[Measured], axes: Sequence[str], names: Names) -> TextTable:
    """Return the table of clients for people, with one column per cell and kind of accuracy."""
    cells: Cells = {}
    for of, kind in _HEADS.items():
        for client, place, accuracy in _known(measured, axes, of, "client"):
            head = f"{place}: {kind}" if place else kind
            cells.setdefault(head, {}).setdefault(client, []).append(accuracy)
    table = _pivot("Client", cells, names.clients, [])
    return table._replace(compact=len(table.heads))


def class_table(measured: Sequence[Measured], axes: Sequence[str], names: Names) -> TextTable:
    """Return the table of classes for people, with one column per cell."""
    cells: Cells = {}
    for label, place, accuracy in _known(measured, axes, CLASS, "label"):
        cells.setdefault(place or "accuracy", {}).setdefault(label, []).append(accuracy)
    return _pivot("Class", cells, names.classes, [NOTES[CLASS]])


def _known(
    measured: Sequence[Measured], axes: Sequence[str], of: str, key: str
) -> Iterator[tuple[int, str, float]]:
    """Yield client or class, place and accuracy of the rows of a kind that have one."""
    for settings, row in measured:
        if row["of"] == of and row["accuracy"] is not None:
            yield row[key], join_labels(axes, [settings[axis] for axis in axes]), row["accuracy"]


def _pivot(head: str, cells: Cells, names: Sequence[str] | None, notes: Sequence[str]) -> TextTable:
    """Return means over seeds: a line for each number in any column, by its name."""
    lines = [
        [name_of(number, names), *(_SHOW(column.get(number, [])) for column in cells.values())]
        for number in sorted({number for column in cells.values() for number in column})
    ]
    return TextTable([head, *cells], lines, 1, notes)
