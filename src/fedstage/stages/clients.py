"""Stage `clients`: accuracy by client and by class, as a table with their names."""

from pathlib import Path

from fedstage.algorithm.measures.metrics import CLASS
from fedstage.experiments.runs_file import read_runs_file
from fedstage.results.client_table import (
    NOTES,
    class_table,
    client_table,
    exact_rows,
    read_clients,
)
from fedstage.results.figures.names import read_names
from fedstage.results.tables.columns import write_csv
from fedstage.results.tables.documents import write_document
from fedstage.results.tables.labels import for_people, settings_for_people


def clients(*, runs: Path, csv: Path, markdown: Path) -> None:
    """Write exact numbers of all runs as `csv`, and means over seeds as `markdown`, for people.

    Clients are named as in the data where the partition is natural, and classes where the data set
    has names for them.
    """
    experiment = read_runs_file(runs)
    measured, names = read_clients(experiment.runs), read_names(experiment.runs)
    write_csv(csv, exact_rows(measured, experiment.axes, names))
    axes = for_people(experiment).axes
    shown = [(settings_for_people(settings, experiment), row) for settings, row in measured]
    source = (
        "the main model after the last round, for each client and for each class; mean ± standard "
        "deviation (n−1) over seeds."
    )
    kinds = {row["of"] for _, row in measured}
    explained = [note for of, note in NOTES.items() if of in kinds and of != CLASS]
    text = " ".join([source, *explained])
    tables = [client_table(shown, axes, names), class_table(shown, axes, names)]
    write_document(experiment, text, tables, markdown=markdown)
