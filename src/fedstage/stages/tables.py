"""Stage `tables`: the metrics of an experiment's runs as CSV, Parquet, Markdown and HTML."""

from pathlib import Path

from fedstage.artefacts import save_table
from fedstage.files import replacing
from fedstage.tables.html import render_html
from fedstage.tables.markdown import describe_source, render
from fedstage.tables.runs import last_rounds, read_runs
from fedstage.tables.summary import summarise, table_schema


def tables(*, runs: Path, csv: Path, parquet: Path, markdown: Path, html: Path) -> None:
    """Put the last evaluated round of each run into a table, averaged over seeds.

    Parameters
    ----------
    runs : Path
        JSON file of the experiment's runs: settings, metrics and partition of each.
    csv, parquet : Path
        The table with exact numbers: a row a combination of the row and column axes.
    markdown, html : Path
        The table for people: rounded, column axes as columns, with a legend.

    Raises
    ------
    FedstageError
        If a file is missing, damaged or empty, an accuracy is not a number, or two runs have the
        same place and seed.
    """
    experiment, frame = read_runs(runs)
    table = summarise(frame, experiment.axes)
    source = describe_source(experiment.experiment, experiment.scale, last_rounds(frame))
    layout = (table, experiment.rows, experiment.columns, experiment.title, source)
    with replacing(csv) as temporary:
        table.to_csv(temporary, index=False, lineterminator="\n")
    save_table(
        parquet,
        {str(name): column for name, column in table.items()},
        table_schema(frame, experiment.axes),
    )
    with replacing(markdown) as temporary:
        temporary.write_text(render(*layout), encoding="utf-8")
    with replacing(html) as temporary:
        temporary.write_text(render_html(*layout), encoding="utf-8")
