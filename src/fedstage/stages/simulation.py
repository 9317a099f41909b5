"""Stage `simulation`: when the jobs of each method's rounds would run on clients and a server.

Nothing is trained: the graph has the jobs that each job waits for, and settings the seconds.
"""

from collections import defaultdict
from collections.abc import Mapping
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import seaborn as sns
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fedstage.data.participation import participants_of
from fedstage.errors import FedstageError
from fedstage.experiments.runs_file import SEED, read_runs_file
from fedstage.plan.data_files import groups_drawn
from fedstage.plan.stages import Edges, Job, jobs_of
from fedstage.protocol.rounds import is_withdrawn
from fedstage.results.documents import csv_of
from fedstage.results.labels import place_label
from fedstage.results.style import save_figure, theme
from fedstage.settings.experiments import Simulation
from fedstage.settings.recipes import Recipe
from fedstage.stages.scores import header_of
from fedstage.storage.files import save_text

_LANE = 0.16  # inches of a machine
_WIDTH, _SMALL = 6.9, 7  # inches of a figure, points of a number
_ROUNDS = 4  # that a figure shows
_NUMBERED = 0.02  # share of a figure's width from which a bar has room for its round


class Span(NamedTuple):
    """The start and end of a job, in seconds from the start of the first round."""

    start: float
    end: float


def list_schedule(
    edges: Edges, seconds: Mapping[Job, float], machines: Mapping[Job, int]
) -> dict[Job, Span]:
    """Let each machine, whenever it is free, run the first of its jobs that are ready.

    Jobs of earlier rounds come first, and in a round jobs of lower groups. A job that takes no time
    needs no machine. The result is in the order in which jobs start.
    """
    spans: dict[Job, Span] = {}
    free: dict[int, float] = defaultdict(float)
    ready: set[Job] = set()
    waiting = TopologicalSorter(edges)
    waiting.prepare()

    def start(job: Job) -> float:
        ends = (spans[before].end for before in edges[job])
        return max(free[machines[job]] if seconds[job] else 0.0, *ends, 0.0)

    while waiting.is_active():
        ready.update(waiting.get_ready())
        job = min(ready, key=lambda job: (start(job), seconds[job] > 0, job))
        spans[job] = Span(start(job), start(job) + seconds[job])
        if seconds[job]:
            free[machines[job]] = spans[job].end
        waiting.done(job)
        ready.remove(job)
    return spans


def schedule(
    recipe: Recipe, rounds: int, settings: Simulation
) -> tuple[dict[Job, Span], dict[Job, int]]:
    """Return the spans of all jobs of a run, and the client of each training that has one."""
    if groups_drawn(recipe) or recipe.participation in ("by_samples", "poisson"):
        raise FedstageError(
            f"simulation: participation = {recipe.participation!r}, client_groups = "
            f"{recipe.client_groups!r}: must be uniform or in_turn, and by_index: who takes part "
            "is not known before training"
        )
    edges = jobs_of(recipe, rounds)
    numbers = (recipe.clients, recipe.participants, recipe.seed)
    turns = recipe.participation == "in_turn"
    drawn = [participants_of(*numbers, round_, turns) for round_ in range(1, rounds + 1)]
    clients = {
        job: int(drawn[job.round - 1][job.participant])
        for job in edges
        if job.stage == "local_training" and not is_withdrawn(recipe, job.round, job.participant)
    }
    own = {job: 0 if settings.one_client_at_a_time else client for job, client in clients.items()}
    absent = {job for job in edges if job.stage == "local_training"} - clients.keys()
    # The steps of secure aggregation have no seconds, either.
    seconds = {job: 0.0 if job in absent else getattr(settings, job.stage, 0.0) for job in edges}
    return list_schedule(edges, seconds, dict.fromkeys(edges, -1) | own), clients


def draw_schedules(
    schedules: Mapping[str, tuple[dict[Job, Span], dict[Job, int]]], clients: int
) -> Figure:
    """Draw each labelled schedule as a Gantt chart: bars have the numbers of their rounds."""
    shown = {
        label: {job: span for job, span in spans.items() if span.end > span.start}
        for label, (spans, _) in schedules.items()
    }
    bars = [(job, span) for spans in shown.values() for job, span in spans.items()]
    until = max(span.end for job, span in bars if job.round <= _ROUNDS)
    groups = 1 + max(job.group for job, _ in bars)
    colours = sns.color_palette("viridis", groups + 1)
    names = {f"training of group {group}": to_hex(colours[group]) for group in range(groups)}
    on_server = sorted({job.stage for job, _ in bars} - {"local_training"})
    names |= {stage: "0.15" if stage == "distillation" else "0.6" for stage in on_server}
    handles = [
        Line2D([], [], color=colour, label=name, marker="s", markersize=5, linestyle="")
        for name, colour in names.items()
    ]
    high = _LANE * (clients + 1) + 0.45
    with theme():
        figure = Figure(figsize=(_WIDTH, high * len(schedules) + 0.5), layout="constrained")
        grid = figure.subplots(len(schedules), 1, squeeze=False)[:, 0]
        for axes, (label, (_, owners)) in zip(grid, schedules.items(), strict=True):
            axes.set_title(label)
            axes.grid(visible=False, axis="y")
            axes.set(xlim=(0, until), ylim=(clients + 0.5, -0.5))
            axes.set_yticks(
                range(clients + 1), ["server", *(f"client {n}" for n in range(clients))]
            )
            for job, (start, end) in shown[label].items():
                trains = job.stage == "local_training"
                colour = names[f"training of group {job.group}" if trains else job.stage]
                lane = 1 + owners[job] if trains else 0
                axes.barh(lane, end - start, 0.84, start, color=colour, edgecolor="white")
                if (end - start) / until > _NUMBERED and end <= until:
                    bright = trains and job.group > groups / 2
                    axes.text(
                        (start + end) / 2, lane, str(job.round), ha="center", va="center_baseline",
                        fontsize=_SMALL, color="black" if bright else "white",
                    )  # fmt: skip
        grid[-1].set_xlabel("Seconds")
        figure.legend(handles=handles, loc="outside lower center", frameon=False, ncols=4)
    return figure


def simulation(*, runs: Path, csv: Path, figure: Path) -> None:
    """Write the start and end of every job as CSV, and draw the first rounds of the first seed."""
    experiment = read_runs_file(runs)
    header, rows, drawn = header_of(experiment), list[dict[str, Any]](), {}
    for run in experiment.runs:
        spans, clients = schedule(run.recipe, run.length.rounds, experiment.simulation)
        place = {axis: run.settings[axis] for axis in (*header.shown, SEED)}
        for job, span in spans.items():
            at = {"round": job.round, "group": job.group, "stage": job.stage}
            rows.append({**place, **at, "client": clients.get(job), **span._asdict()})
        if run.recipe.seed == experiment.runs[0].recipe.seed:
            seconds = max(span.end for span in spans.values()) / run.length.rounds
            name = place_label(header.shown, run.settings, header)
            drawn[f"{name}: {seconds:.3g} s a round"] = spans, clients
    frame = pd.DataFrame(rows)
    save_text(csv, csv_of(frame.assign(client=frame["client"].astype("Int64"))))
    most = max(run.recipe.clients for run in experiment.runs)
    save_figure(draw_schedules(drawn, most), figure)
