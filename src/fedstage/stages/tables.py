"""Stage `tables`: the metrics of an experiment's runs as CSV, Parquet, Markdown, HTML and LaTeX."""

from pathlib import Path

import pyarrow as pa

from fedstage.results.tables.columns import frame_as_csv
from fedstage.results.tables.documents import TableFiles
from fedstage.results.tables.html import render_html
from fedstage.results.tables.latex import render_latex
from fedstage.results.tables.markdown import render
from fedstage.results.tables.measured import DROPPED
from fedstage.results.tables.presented import count_dropped, present
from fedstage.results.tables.runs import read_scores
from fedstage.results.tables.summary import summarise, table_schema
from fedstage.storage.files import save_text
from fedstage.storage.tables import save_table


def tables(*, runs: Path, scores: Path | None = None, files: TableFiles, latex: Path) -> None:
    """Write the table of the last evaluated round of each run, averaged over seeds.

    It has the published numbers and the differences too, if the experiment has a counterpart. The
    exact numbers have one row per combination of the row and column axes; the others are rounded,
    with column axes as columns and a legend. Where updates were dropped, both
    give their number.
    """
    experiment, frame = read_scores(runs, scores)
    metric = experiment.metric
    table = summarise(frame, experiment.axes, metric)
    schema = table_schema(frame, experiment.axes, metric)
    counts = count_dropped(experiment, frame)
    if any(dropped for dropped, _ in counts):
        dropped, updates = zip(*counts, strict=True)
        table = table.assign(dropped=dropped, updates=updates)
        schema = pa.schema([*schema, *DROPPED])
    layout, source = present(experiment, frame, table, counts)
    label = f"{experiment.experiment}-{experiment.scale}"
    save_text(files.csv, frame_as_csv(table))
    save_table(files.parquet, {str(name): column for name, column in table.items()}, schema)
    save_text(files.markdown, render(layout, experiment.title, source))
    save_text(files.html, render_html(layout, experiment.title, source))
    save_text(latex, render_latex(layout, experiment.title, source, label))
