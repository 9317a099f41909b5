"""Stage `communication`: the bytes that each method costs a client, and its accuracy."""

from dataclasses import replace
from pathlib import Path

from fedstage.experiments.runs_file import read_runs_file
from fedstage.results.communication.figure import describe_communication, draw_communication
from fedstage.results.communication.runs import read_traffic, with_goals, with_one_unit
from fedstage.results.communication.shown import explain_goal, goal_table, shown_traffic
from fedstage.results.communication.table import (
    COLUMNS,
    RUN_COLUMNS,
    run_rows,
    table_rows,
)
from fedstage.results.figures.looks import looks_of_runs
from fedstage.results.figures.style import save_figure
from fedstage.results.tables.columns import write_exact
from fedstage.results.tables.documents import TableFiles, write_document
from fedstage.results.tables.labels import for_people, settings_for_people
from fedstage.settings.experiments import is_fixed


def communication(*, runs: Path, files: TableFiles, by_run: Path, figure: list[Path]) -> None:
    """Add up the bytes that one client sends and receives in each phase of each run.

    The exact numbers have one row per run and phase, tables for people a line per cell, with means
    over seeds. `by_run` has a row for each run, with its value on
    every axis and its seed, for claims; `figure` draws accuracy over bytes, with a path for each
    format and for its caption. Where an accuracy to reach is fixed, tables for people begin with
    the parameters that all participants have moved until it is reached.
    """
    experiment = read_runs_file(runs)
    metric, axes, reach = experiment.metric, experiment.axes, experiment.reach
    read = with_one_unit([read_traffic(run, metric) for run in experiment.runs])
    measured = with_goals(read, reach)
    write_exact(table_rows(measured, axes), COLUMNS, csv=files.csv, parquet=files.parquet)
    write_exact(run_rows(measured), RUN_COLUMNS, parquet=by_run)
    people = for_people(experiment)
    labelled = [
        replace(run, settings=settings_for_people(run.settings, experiment)) for run in measured
    ]
    if isinstance(reach, dict):
        reach = settings_for_people(reach, experiment)
    source = (
        "what the mean client sends and receives until training ends, from the files and tables "
        "that travelled."
    )
    source = " ".join([source, *experiment.communication_notes])
    tables = [shown_traffic(labelled, people.axes, metric, experiment.memory, reach)]
    if is_fixed(reach):
        notes = _notes(explain_goal(reach, metric), experiment.params)
        tables.insert(0, goal_table(labelled, people.rows, people.columns, notes))
    write_document(experiment, source, tables, markdown=files.markdown, html=files.html)
    what, bands = (labelled, people.rows, people.columns), experiment.bands
    drawn = draw_communication(*what, metric, looks_of_runs(experiment), bands)
    caption = describe_communication(*what, bands)
    save_figure(drawn, figure, f"{experiment.title}. {caption}")


def _notes(until: str, published: str | None) -> list[str]:
    """Return what the first table's cells mean."""
    cells = (
        f"Cells: numbers of 32 bits that all participants together send and receive {until}; mean "
        "over the seeds that reach it."
    )
    return [cells] if published is None else [cells, f"**published**: what {published} reports."]
