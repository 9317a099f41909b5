"""Stage `communication`: what each method costs a client, as a table and against its accuracy."""

from pathlib import Path

from fedstage.results.communication.described import CommunicationRuns
from fedstage.results.communication.figure import draw_communication
from fedstage.results.communication.measurements import run_rows, run_schema
from fedstage.results.communication.reach import with_references
from fedstage.results.communication.runs import read_traffic
from fedstage.results.communication.table import legend, shown_rows, table_rows, table_schema
from fedstage.results.figures.style import save_figure
from fedstage.results.tables.html import grid, inline, items, page
from fedstage.results.tables.plain import as_columns, write_csv, write_markdown
from fedstage.settings.validation import validate
from fedstage.storage.files import load_json, replacing
from fedstage.storage.tensors import save_table


def communication(
    *,
    runs: Path,
    csv: Path,
    parquet: Path,
    by_run: Path,
    markdown: Path,
    html: Path,
    figure: Path,
) -> None:
    """Add up what one client sends and receives in each phase of each run, from the tables of both.

    Parameters
    ----------
    runs : Path
        JSON file of the experiment's runs: their axes, lines and metrics.
    csv, parquet : Path
        Exact numbers, a row a run and phase.
    by_run : Path
        Parquet with a row a run, its value on every axis and its seed: what claims are judged by.
    markdown, html : Path
        Means over seeds, for people.
    figure : Path
        Accuracy over bytes, PNG or SVG by suffix.

    Raises
    ------
    FedstageError
        If a file is missing or damaged.
    """
    experiment = validate(CommunicationRuns, load_json(runs), str(runs))
    metric, axes = experiment.metric, experiment.axes
    read = [read_traffic(run, metric) for run in experiment.runs]
    measured = with_references(read, experiment.reach)
    rows = table_rows(measured, axes)
    schema = table_schema(rows, axes)
    write_csv(csv, rows)
    save_table(parquet, as_columns(rows, schema), schema)
    numbers = run_rows(measured)
    columns = run_schema(numbers)
    save_table(by_run, as_columns(numbers, columns), columns)
    shown = shown_rows(rows, axes, metric)
    notes = legend(metric, experiment.published, experiment.reach)
    source = (
        f"Experiment `{experiment.experiment}` at scale `{experiment.scale}`: what the mean client "
        "sends and receives until training ends, from the files and tables that travelled."
    )
    if experiment.notes:
        source += " " + " ".join(experiment.notes)
    write_markdown(markdown, experiment.title, source, shown, notes)
    _write_html(html, experiment.title, source, shown, notes, len(axes) + 1)
    drawn = draw_communication(
        measured, experiment.rows, experiment.columns, experiment.title, metric
    )
    save_figure(drawn, figure)


def _write_html(
    path: Path,
    title: str,
    source: str,
    rows: list[dict[str, str]],
    notes: dict[str, str],
    left: int,
) -> None:
    heads = list(rows[0])
    lines = [[row[head].replace("**", "") for head in heads] for row in rows]
    explained = [f"**{name}**: {text}" for name, text in notes.items() if name in heads]
    parts = [f"<p>{inline(source)}</p>", grid(heads, lines, left), items(explained)]
    with replacing(path) as temporary:
        temporary.write_text(page(title, parts), encoding="utf-8")
