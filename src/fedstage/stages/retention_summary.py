"""Stage `retention_summary`: what each method forgets, as a table, curves and Venn diagrams."""

from dataclasses import replace
from pathlib import Path

from fedstage.results.figures.style import save_figure
from fedstage.results.retention.curves import describe_curves, draw_curves
from fedstage.results.retention.overlaps import overlap_columns, overlap_rows, shown_overlaps
from fedstage.results.retention.runs import read_retention
from fedstage.results.retention.table import (
    LEGEND,
    OVERLAP_NOTES,
    run_rows,
    shown_rows,
    table_rows,
    table_schema,
)
from fedstage.results.retention.venn import describe_venn, draw_venn
from fedstage.results.runs_file import read_runs_file
from fedstage.results.tables.exact import write_csv, write_parquet
from fedstage.results.tables.labels import for_people, settings_for_people
from fedstage.results.tables.plain import Small, write_html, write_markdown


def retention_summary(
    *,
    runs: Path,
    csv: Path,
    parquet: Path,
    by_run: Path,
    overlap: Path,
    markdown: Path,
    html: Path,
    curves: list[Path],
    venn: list[Path],
) -> None:
    """Average the measures of forgetting of all runs over rounds and seeds.

    `csv` and `parquet` have exact numbers, a row a cell of the table, `markdown` and `html` rounded
    ones. `by_run` has a row for each run, with its value on every axis and its seed, for claims.
    `overlap` has a row for each pair of methods: how much of their new knowledge is the same.
    `curves` draws measures over rounds, `venn` what is lost, gained and retained;
    both have a path for each format, and one for their caption.
    """
    experiment = read_runs_file(runs)
    axes = experiment.axes
    measured = [read_retention(run) for run in experiment.runs]
    rows, numbers = table_rows(measured, axes), run_rows(measured)
    write_csv(csv, rows)
    write_parquet(parquet, rows, table_schema(rows, axes))
    write_parquet(by_run, numbers, table_schema(numbers, experiment.runs[0].settings))
    overlaps = overlap_rows(measured, axes)
    write_csv(overlap, overlaps, overlap_columns(axes))
    people = for_people(experiment)
    labelled = [
        replace(run, settings=settings_for_people(run.settings, experiment)) for run in measured
    ]
    shown = shown_rows(table_rows(labelled, people.axes), people.axes)
    last = None
    if overlaps:
        last = Small(shown_overlaps(overlaps, experiment.labels), len(axes) + 1, OVERLAP_NOTES)
    source = (
        f"Experiment `{experiment.experiment}` at scale `{experiment.scale}`: what the main model "
        "forgets of the participants before, from round to round."
    )
    title = experiment.title
    write_markdown(markdown, title, source, shown, LEGEND, last=last)
    write_html(html, shown, LEGEND, title=title, source=source, left=len(axes), last=last)
    drawn = (labelled, people.rows, people.columns)
    save_figure(draw_curves(*drawn), curves, f"{title}. {describe_curves(labelled)}")
    save_figure(draw_venn(*drawn), venn, f"{title}. {describe_venn(labelled)}")
