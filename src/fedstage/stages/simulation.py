"""Stage `simulation`: a schedule of the jobs of each method's rounds, and seconds per round."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from statistics import mean
from typing import Any

import pyarrow as pa
from matplotlib.figure import Figure

from fedstage.results.figures.style import save_figure
from fedstage.results.runs_file import SEED, ExperimentRun, ExperimentRuns, read_runs_file
from fedstage.results.simulation.availability import away_before, windows
from fedstage.results.simulation.events import AGGREGATOR
from fedstage.results.simulation.figure import Panel, draw_gantt
from fedstage.results.simulation.schedule import Schedule, schedule
from fedstage.results.simulation.table import COLUMNS, describe
from fedstage.results.tables.columns import averaged, known, text_table
from fedstage.results.tables.documents import write_document
from fedstage.results.tables.exact import write_csv, write_parquet
from fedstage.results.tables.labels import (
    for_people,
    join_for_people,
    join_labels,
    name_for_people,
    place_for_people,
)

Scheduled = Sequence[tuple[ExperimentRun, Schedule]]

#: One row per job; the run is a cell of the table, such as ``method = fedavg``, with a seed.
JOBS_SCHEMA = pa.schema(
    [
        ("run", pa.string()),
        ("seed", pa.int64()),
        ("round", pa.int32()),
        ("group", pa.int32()),
        ("stage", pa.string()),
        ("client", pa.int32()),  # null for jobs of the server
        ("worker", pa.int32()),  # of the server; 0 for clients
        ("start", pa.float64()),  # seconds
        ("end", pa.float64()),
    ]
)


def simulation(*, runs: Path, markdown: Path, csv: Path, jobs: Path, figure: list[Path]) -> None:
    """Simulate the rounds of each run on a server and clients that are not always available.

    The table has seconds per round and idle times for each combination of its axes. `jobs` has the
    start and end of every job as Parquet. `figure` shows the first rounds of the first seed's runs,
    and has a path for each format, and one for its caption.
    """
    experiment = read_runs_file(runs)
    settings = experiment.simulation
    schedules = {
        place: [(run, schedule(run.recipe, run.length.rounds, settings)) for run in same]
        for place, same in experiment.places().items()
    }
    axes = experiment.axes
    lines, numbers = [], []
    for place, same in schedules.items():
        measures = [asdict(made.measures) for _, made in same]
        values = dict(zip(axes, place, strict=True))
        keys = list(place_for_people(values, experiment).values())
        lines.append((keys, known(measures, COLUMNS)))
        numbers.append(values | averaged(measures, COLUMNS, mean))
    table = text_table(for_people(experiment).axes, lines, COLUMNS)
    write_document(experiment, describe(experiment), [table], markdown=markdown)
    write_csv(csv, numbers)
    rows = [
        row for place, same in schedules.items() for row in _rows(join_labels(axes, place), same)
    ]
    write_parquet(jobs, rows, JOBS_SCHEMA)
    scheduled = [run for runs in schedules.values() for run in runs]
    save_figure(_draw(experiment, scheduled), figure, _caption(experiment))


def _rows(label: str, runs: Scheduled) -> Iterator[dict[str, Any]]:
    """Yield a row of `JOBS_SCHEMA` for each job, in the order of their start."""
    for run, made in runs:
        for job, span in sorted(made.spans.items(), key=lambda item: (item[1].start, item[0])):
            yield {
                "run": label,
                "seed": run.recipe.seed,
                "round": job.round,
                "group": job.group,
                "stage": job.stage,
                "client": span.place if span.place >= 0 else None,
                "worker": span.worker,
                "start": span.start,
                "end": span.end,
            }


# --- the figure -----------------------------------------------------------------------------------


def _draw(experiment: ExperimentRuns, scheduled: Scheduled) -> Figure:
    until, panels = choose_panels(experiment, scheduled)
    return draw_gantt(
        panels,
        until,
        clients=max(run.recipe.clients for run in experiment.runs),
        servers=experiment.simulation.servers,
    )


def _caption(experiment: ExperimentRuns) -> str:
    place = join_for_people(experiment.columns, experiment.runs[0].settings, experiment)
    return (
        f"{experiment.title}{f': {place}' if place else ''}. Numbers are rounds. Simulated over "
        "the edges of the graph of jobs, for one seed."
    )


def choose_panels(experiment: ExperimentRuns, scheduled: Scheduled) -> tuple[float, list[Panel]]:
    """Return the end of the figure's scale and its panels.

    The panels are the first seed's runs in the first columns of the table, until the slowest of
    them has completed the first `shown_rounds` rounds; runs of the same schedule share one.
    """
    settings, rounds = experiment.runs[0].settings, experiment.simulation.shown_rounds
    fixed = [*experiment.columns, SEED]
    shown = [
        (run, made)
        for run, made in scheduled
        if all(run.settings[axis] == settings[axis] for axis in fixed)
    ]
    until = max(
        span.end for _, made in shown for job, span in made.spans.items() if job.round <= rounds
    )
    panels: dict[str, Panel] = {}
    names: dict[str, list[str]] = {}
    for run, made in shown:
        panel = _panel(experiment, run, made, until)
        alike = _look(panel)
        panels[alike] = panel
        name = name_for_people(experiment.rows, run.settings, experiment)
        names.setdefault(alike, []).append(name)
    return until, [
        replace(panel, label=f"{'; '.join(names[alike])}: {panel.label}")
        for alike, panel in panels.items()
    ]


def _look(panel: Panel) -> str:
    """Return a text that is the same for panels that look the same."""
    bars = sorted(f"{job.round} {job.group} {job.stage} {at}" for job, at in panel.spans.items())
    return repr((panel.label, bars, panel.away))


def _panel(experiment: ExperimentRuns, run: ExperimentRun, made: Schedule, until: float) -> Panel:
    """Return what is drawn of a run's schedule, without its name."""
    spans = {
        job: span
        for job, span in made.spans.items()
        if span.start < until and span.place != AGGREGATOR
    }
    availability = experiment.simulation.availability
    away = {
        client: list(away_before(windows(availability, run.recipe.seed, client), until))
        for client in range(run.recipe.clients)
    }
    return Panel(f"{made.measures.round_seconds:.1f} s a round", spans, away)
