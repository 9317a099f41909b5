"""Tables of accuracies by client and by class, with the names that the data give them."""

from collections.abc import Mapping, Sequence
from typing import Any

from fedstage.algorithm.measures.metrics import CLASS, OWN_MIX, TEST, VALIDATION
from fedstage.experiments.runs_file import SEED, ExperimentRun
from fedstage.results.figures.names import Names, name_of
from fedstage.results.tables.columns import Cell, TextTable, with_deviation
from fedstage.results.tables.labels import NOTHING, join_labels, show_range
from fedstage.storage.tables import load_table

COLUMNS = ("of", "client", "client_name", "label", "class_name", "samples", "accuracy")

#: The heads of a kind's accuracies, and of the numbers of their samples.
_HEADS = {
    TEST: ("accuracy on own test samples", "own test samples"),
    VALIDATION: ("accuracy on own validation samples", "own validation samples"),
    OWN_MIX: ("estimate by own mix of classes", "own training samples"),
}
NOTES = {
    TEST: (
        "**accuracy on own test samples**: accuracy on each client's own test samples (%), and "
        "their number."
    ),
    OWN_MIX: (
        "**estimate by own mix of classes**: accuracy on all test samples, which have no client, "
        "each class weighted by the client's training samples of it (%)."
    ),
    VALIDATION: "**accuracy on own validation samples**: on the client's own, set aside (%).",
    CLASS: "Accuracy on the test samples of each class (%), and their number.",
}

#: The cells of a client or class, by its number, by the heads of columns.
Columns = dict[str, dict[int, str]]
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
    """Return the table of clients for people.

    Each kind of accuracy has a column with the numbers of samples, and one per cell.
    """
    columns: Columns = {}
    for of, (accuracy, samples) in _HEADS.items():
        rows = [(settings, row) for settings, row in measured if row["of"] == of]
        columns |= _columns(rows, axes, "client", samples, accuracy)
    table = _pivot("Client", columns, names.clients, [])
    return table._replace(compact=len(table.heads))


def class_table(measured: Sequence[Measured], axes: Sequence[str], names: Names) -> TextTable:
    """Return the table of classes for people, with one column per cell."""
    rows = [(settings, row) for settings, row in measured if row["of"] == CLASS]
    columns = _columns(rows, axes, "label", "test samples", "accuracy")
    return _pivot("Class", columns, names.classes, [NOTES[CLASS]])


def _columns(
    measured: Sequence[Measured], axes: Sequence[str], key: str, samples: str, accuracy: str
) -> Columns:
    """Return the cells by client or class: the number of samples, then accuracies."""
    counts: dict[int, set[int]] = {}
    accuracies: dict[str, dict[int, list[float]]] = {}
    for settings, row in measured:
        counts.setdefault(row[key], set()).add(row["samples"])
        place = join_labels(axes, [settings[axis] for axis in axes])
        column = accuracies.setdefault(f"{place}: {accuracy}" if place else accuracy, {})
        column.setdefault(row[key], [])
        if row["accuracy"] is not None:
            column[row[key]].append(row["accuracy"])
    if not counts:
        return {}
    shown = {
        head: {n: _SHOW(of) for n, of in column.items()} for head, column in accuracies.items()
    }
    return {samples: {number: show_range(own) for number, own in counts.items()}} | shown


def _pivot(
    head: str, columns: Columns, names: Sequence[str] | None, notes: Sequence[str]
) -> TextTable:
    """Return the table with a line for each client or class in any column, by its name."""
    lines = [
        [name_of(number, names), *(column.get(number, NOTHING) for column in columns.values())]
        for number in sorted({number for column in columns.values() for number in column})
    ]
    return TextTable([head, *columns], lines, 1, notes)
