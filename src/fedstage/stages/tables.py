"""Stage `tables`: the metrics of an experiment's runs as CSV, Parquet, Markdown, HTML and LaTeX."""

from pathlib import Path

from fedstage.results.tables.html import render_html
from fedstage.results.tables.latex import render_latex
from fedstage.results.tables.layout import describe_source, lay_out
from fedstage.results.tables.markdown import render
from fedstage.results.tables.runs import last_rounds, read_scores
from fedstage.results.tables.summary import summarise, table_schema
from fedstage.storage.files import replacing
from fedstage.storage.tensors import save_table


def tables(
    *, runs: Path, csv: Path, parquet: Path, markdown: Path, html: Path, latex: Path
) -> None:
    """Put the last evaluated round of each run into a table, averaged over seeds.

    Where the experiment has a published counterpart, its numbers and the differences stand beside.

    Parameters
    ----------
    runs : Path
        JSON file of the experiment's runs: settings, metrics, partition and published number.
    csv, parquet : Path
        The table with exact numbers: a row a combination of the row and column axes.
    markdown, html, latex : Path
        The table for people: rounded, column axes as columns, with a legend.

    Raises
    ------
    FedstageError
        If a file is missing, damaged or empty, an accuracy is not a number, or two runs have the
        same place and seed.
    """
    experiment, frame = read_scores(runs)
    metric = experiment.metric
    table = summarise(frame, experiment.axes, metric)
    source = describe_source(experiment.experiment, experiment.scale, last_rounds(frame), metric)
    layout = lay_out(
        table, experiment.rows, experiment.columns, experiment.published, experiment.notes
    )
    label = f"{experiment.experiment}-{experiment.scale}"
    with replacing(csv) as temporary:
        table.to_csv(temporary, index=False, lineterminator="\n")
    save_table(
        parquet,
        {str(name): column for name, column in table.items()},
        table_schema(frame, experiment.axes, metric),
    )
    texts = {
        markdown: render(layout, experiment.title, source),
        html: render_html(layout, experiment.title, source),
        latex: render_latex(layout, experiment.title, source, label),
    }
    for path, text in texts.items():
        with replacing(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
