"""Stage `simulation`: when the jobs of each method's rounds would run, and seconds a round."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from matplotlib.figure import Figure

from fedstage.results.definitions import DefinedRun, Definition, read_definition
from fedstage.results.figures.style import save_figure
from fedstage.results.simulation.availability import away_before, windows
from fedstage.results.simulation.events import AGGREGATOR
from fedstage.results.simulation.figure import Panel, draw_gantt
from fedstage.results.simulation.schedule import Schedule, schedule
from fedstage.results.simulation.table import LEGEND, as_numbers, as_texts, describe
from fedstage.results.tables.labels import join_labels, show_value
from fedstage.results.tables.plain import write_csv, write_markdown
from fedstage.settings.scores import Axis
from fedstage.storage.tensors import save_table

Scheduled = Sequence[tuple[DefinedRun, Schedule]]

#: A row a job of a run. The run is its place in the table, such as ``method = fedavg``, and seed.
JOBS_SCHEMA = pa.schema(
    [
        ("run", pa.string()),
        ("seed", pa.int64()),
        ("round", pa.int32()),
        ("group", pa.int32()),
        ("stage", pa.string()),
        ("client", pa.int32()),  # null for what no client does
        ("worker", pa.int32()),  # of the server; 0 for clients
        ("start", pa.float64()),  # seconds
        ("end", pa.float64()),
    ]
)


def simulation(*, definition: Path, markdown: Path, csv: Path, jobs: Path, figure: Path) -> None:
    """Simulate the rounds of each run on clients that are not always there and a server.

    Parameters
    ----------
    definition : Path
        JSON file of the experiment's lines and of the simulation's settings.
    markdown, csv : Path
        Seconds a round and idle times, a row a combination of the table's axes.
    jobs : Path
        Start and end of every job, as Parquet.
    figure : Path
        The first rounds of the first seed's runs as a Gantt chart, PNG or SVG by suffix.

    Raises
    ------
    FedstageError
        If a file is missing or damaged, or the suffix is neither ``.png`` nor ``.svg``.
    """
    experiment = read_definition(definition)
    settings = experiment.simulation
    found = {
        place: [(run, schedule(run.line, run.length.rounds, settings)) for run in runs]
        for place, runs in experiment.places().items()
    }
    axes = experiment.axes
    texts, numbers = [], []
    for place, runs in found.items():
        measures = [made.measures for _, made in runs]
        values = dict(zip(axes, place, strict=True))
        texts.append(
            {axis: show_value(value) for axis, value in values.items()} | as_texts(measures)
        )
        numbers.append(values | as_numbers(measures))
    write_markdown(markdown, experiment.title, describe(experiment), texts, LEGEND)
    write_csv(csv, numbers)
    rows = [row for place, runs in found.items() for row in _rows(join_labels(axes, place), runs)]
    save_table(jobs, {name: [row[name] for row in rows] for name in JOBS_SCHEMA.names}, JOBS_SCHEMA)
    save_figure(_draw(experiment, found), figure)


def _rows(label: str, runs: Scheduled) -> Iterator[dict[str, Any]]:
    """Yield a row of `JOBS_SCHEMA` for each job, in the order of their start."""
    for run, made in runs:
        for job, span in sorted(made.spans.items(), key=lambda item: (item[1].start, item[0])):
            yield {
                "run": label,
                "seed": run.line.seed,
                "round": job.round,
                "group": job.group,
                "stage": job.stage,
                "client": span.place if span.place >= 0 else None,
                "worker": span.worker,
                "start": span.start,
                "end": span.end,
            }


# --- the figure -----------------------------------------------------------------------------------


def _draw(experiment: Definition, found: Mapping[tuple[Axis, ...], Scheduled]) -> Figure:
    until, panels = choose_panels(experiment, [one for runs in found.values() for one in runs])
    place = join_labels(experiment.columns, _first(experiment, experiment.columns))
    return draw_gantt(
        panels,
        until,
        clients=max(run.line.clients for run in experiment.runs),
        servers=experiment.simulation.servers,
        title=f"{experiment.title}: {place}" if place else experiment.title,
        note="Numbers are rounds. Simulated over the edges of the graph of jobs, for one seed.",
    )


def choose_panels(experiment: Definition, scheduled: Scheduled) -> tuple[float, list[Panel]]:
    """Return what the figure shows, and until when.

    That is the first seed's runs at the first place among the columns of the table, until the
    slowest of them has completed the first `shown_rounds` rounds.
    """
    fixed = [*experiment.columns, "seed"]
    first = _first(experiment, fixed)
    shown = [
        (run, made) for run, made in scheduled if [run.settings[axis] for axis in fixed] == first
    ]
    until = max(_end_of(made, experiment.simulation.shown_rounds) for _, made in shown)
    return until, [_panel(experiment, run, made, until) for run, made in shown]


def _first(experiment: Definition, axes: Sequence[str]) -> list[Axis]:
    return [experiment.runs[0].settings[axis] for axis in axes]


def _end_of(made: Schedule, rounds: int) -> float:
    return max(span.end for job, span in made.spans.items() if job.round <= rounds)


def _panel(experiment: Definition, run: DefinedRun, made: Schedule, until: float) -> Panel:
    name = join_labels(experiment.rows, [run.settings[axis] for axis in experiment.rows])
    spans = {
        job: span
        for job, span in made.spans.items()
        if span.start < until and span.place != AGGREGATOR
    }
    availability = experiment.simulation.availability
    away = {
        client: list(away_before(windows(availability, run.line.seed, client), until))
        for client in range(run.line.clients)
    }
    return Panel(f"{name}: {made.measures.round_seconds:.1f} s a round", spans, away)
