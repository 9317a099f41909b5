"""Stage `communication`: the bytes that each method costs a client, and its accuracy."""

from dataclasses import replace
from pathlib import Path

from fedstage.results.communication.figure import draw_communication
from fedstage.results.communication.runs import read_traffic, with_references
from fedstage.results.communication.table import (
    legend,
    run_rows,
    run_schema,
    shown_rows,
    table_rows,
    table_schema,
)
from fedstage.results.figures.style import save_figure
from fedstage.results.runs_file import read_runs_file
from fedstage.results.tables.labels import for_people, settings_for_people
from fedstage.results.tables.plain import write_csv, write_html, write_markdown, write_parquet


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
    """Add up the bytes that one client sends and receives in each phase of each run.

    `csv` and `parquet` have exact numbers, a row a run and phase, `markdown` and `html` means over
    seeds, for people. `by_run` has a row for each run, with its value on every axis and its seed,
    for claims; `figure` draws accuracy over bytes.
    """
    experiment = read_runs_file(runs)
    metric, axes = experiment.metric, experiment.axes
    read = [read_traffic(run, metric) for run in experiment.runs]
    measured = with_references(read, experiment.reach)
    rows, numbers = table_rows(measured, axes), run_rows(measured)
    write_csv(csv, rows)
    write_parquet(parquet, rows, table_schema(rows, axes))
    write_parquet(by_run, numbers, run_schema(numbers))
    people = for_people(experiment)
    labelled = [
        replace(run, settings=settings_for_people(run.settings, experiment)) for run in measured
    ]
    shown = shown_rows(table_rows(labelled, people.axes), people.axes, metric)
    reach = experiment.reach and settings_for_people(experiment.reach, experiment)
    explained = legend(metric, experiment.memory, reach)
    source = " ".join(
        [
            f"Experiment `{experiment.experiment}` at scale `{experiment.scale}`: what the mean "
            "client sends and receives until training ends, from the files and tables that "
            "travelled.",
            *experiment.memory_notes,
        ]
    )
    write_markdown(markdown, experiment.title, source, shown, explained)
    about = {"title": experiment.title, "source": source}
    write_html(html, shown, explained, **about, left=len(axes) + 1)
    drawn = draw_communication(labelled, people.rows, people.columns, experiment.title, metric)
    save_figure(drawn, figure)
