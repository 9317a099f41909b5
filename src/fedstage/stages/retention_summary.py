"""Stage `retention_summary`: what each method forgets, as a table and curves."""

from dataclasses import replace
from pathlib import Path

from fedstage.experiments.runs_file import read_runs_file
from fedstage.results.figures.looks import looks_of_runs
from fedstage.results.figures.style import save_figure
from fedstage.results.retention.curves import describe_curves, draw_curves
from fedstage.results.retention.table import (
    BY_RUN,
    COLUMNS,
    OVERLAP,
    mean_overlaps,
    overlap_columns,
    overlap_rows,
    read_retention,
    run_rows,
    shown_overlaps,
    shown_retention,
    table_rows,
)
from fedstage.results.tables.columns import write_csv, write_exact
from fedstage.results.tables.documents import TableFiles, write_document
from fedstage.results.tables.labels import for_people, settings_for_people


def retention_summary(
    *,
    runs: Path,
    files: TableFiles,
    by_run: Path,
    overlap: Path,
    curves: list[Path],
) -> None:
    """Average the measures of forgetting of all runs over rounds and seeds.

    The exact numbers have one row per cell of the table. `by_run` has a row for each run, with its
    value on every axis, its seed and its mean overlap with the other methods, for claims. `overlap`
    has a row for each pair of methods: how much of their new knowledge is the same. `curves` draws
    measures over rounds, with a path for each format, and one for the caption.
    """
    experiment = read_runs_file(runs)
    axes = experiment.axes
    measured = [read_retention(run) for run in experiment.runs]
    write_exact(table_rows(measured, axes), COLUMNS, csv=files.csv, parquet=files.parquet)
    shared = zip(run_rows(measured), mean_overlaps(measured, axes), strict=True)
    write_exact([row | {OVERLAP: value} for row, value in shared], BY_RUN, parquet=by_run)
    overlaps = overlap_rows(measured, axes)
    write_csv(overlap, overlaps, overlap_columns(axes))
    people = for_people(experiment)
    labelled = [
        replace(run, settings=settings_for_people(run.settings, experiment)) for run in measured
    ]
    tables = [shown_retention(labelled, people.axes)]
    if overlaps:
        tables.append(shown_overlaps(overlaps, axes, experiment.labels))
    source = "what the main model forgets of the participants before, from round to round."
    write_document(experiment, source, tables, markdown=files.markdown, html=files.html)
    looks, bands = looks_of_runs(experiment), experiment.bands
    figure = draw_curves(labelled, people.rows, people.columns, looks, bands)
    save_figure(figure, curves, f"{experiment.title}. {describe_curves(labelled, bands)}")
