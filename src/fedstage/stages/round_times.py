"""Stage `round_times`: the seconds of a round's jobs, as the jobs themselves measured them."""

from collections.abc import Sequence
from pathlib import Path

from fedstage.experiments.runs_file import read_runs_file
from fedstage.results.round_times import (
    COLUMNS,
    SHOWN,
    as_numbers,
    machines_of,
    read_times,
    seconds_by_column,
)
from fedstage.results.tables.columns import Cell, Row, text_table, write_exact
from fedstage.results.tables.documents import write_document
from fedstage.results.tables.labels import for_people, place_for_people


def round_times(*, runs: Path, markdown: Path, csv: Path, parquet: Path, by_run: Path) -> None:
    """Collect the seconds of the jobs of each run from their records, below ``results/logs``.

    Seconds include computing and files, but not start-up. Jobs that ran at the same time as others
    may have been slowed down. The table has a row for each combination of its axes, `by_run` a row
    for each run, with its value on every axis and its seed, for claims.
    """
    experiment = read_runs_file(runs)
    lines: list[tuple[Sequence[str], Row]] = []
    numbers: list[dict[str, Cell]] = []
    measured: list[dict[str, Cell]] = []
    machines: dict[str, None] = {}
    for place, same in experiment.places().items():
        times = [read_times(Path(), run.recipe, run.length.rounds) for run in same]
        values = dict(zip(experiment.axes, place, strict=True))
        rounds = sum(run.length.rounds for run in same)
        seconds, names = seconds_by_column(times), machines_of(times)
        machines |= dict.fromkeys(names)
        keys = list(place_for_people(values, experiment).values())
        lines.append((keys, seconds | {"measured_rounds": rounds}))
        counts: dict[str, Cell] = {
            "measured_rounds": rounds,
            "seeds": len(same),
            "machine": "; ".join(names),
        }
        numbers.append({**values, **as_numbers(seconds), **counts})
        measured += [
            {**run.settings, **as_numbers(seconds_by_column([own]))}
            for run, own in zip(same, times, strict=True)
        ]
    source = f"seconds of computing that the jobs recorded, on {'; '.join(machines)}."
    table = text_table(for_people(experiment).axes, lines, SHOWN)
    write_document(experiment, source, [table], markdown=markdown)
    write_exact(numbers, COLUMNS, csv=csv, parquet=parquet)
    write_exact(measured, COLUMNS, parquet=by_run)
