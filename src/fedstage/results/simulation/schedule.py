"""The schedule of a line's rounds: its jobs on its clients and a server."""

from collections.abc import Iterator
from dataclasses import dataclass

from fedstage.data.participation import participants_of
from fedstage.plan import artefacts
from fedstage.plan.jobs import Edges, Job, job_of, jobs_of
from fedstage.plan.sharing import binding
from fedstage.results.simulation.availability import Window, windows
from fedstage.results.simulation.durations import seconds_of
from fedstage.results.simulation.events import AGGREGATOR, SERVER, Span, simulate
from fedstage.results.simulation.measures import Measures, measure
from fedstage.settings.lines import Line
from fedstage.settings.simulation import Simulation


@dataclass(frozen=True)
class Schedule:
    """Where and when the jobs of a line run, and what follows from it."""

    spans: dict[Job, Span]
    measures: Measures


def schedule(line: Line, rounds: int, settings: Simulation) -> Schedule:
    """Simulate the rounds of a line, on the clients that it draws as participants."""
    edges = _held_back(line, jobs_of(line, rounds), settings.rounds_ahead)
    clients = _clients(line, edges, rounds)
    seconds = seconds_of(line, edges, clients, settings)
    places = {
        job: AGGREGATOR if job.stage == "aggregation" else clients.get(job, SERVER) for job in edges
    }

    def intervals(place: int) -> Iterator[Window]:
        return windows(settings.availability if place >= 0 else None, line.seed, place)

    # A group aggregates one round after the other, so that many workers are never short.
    workers = {SERVER: settings.servers, AGGREGATOR: line.global_models}
    spans = simulate(edges, seconds, places, intervals, workers)
    measures = measure(
        edges,
        seconds,
        spans,
        intervals,
        rounds=rounds,
        servers=settings.servers,
        clients=line.clients,
    )
    return Schedule(spans, measures)


def _held_back(line: Line, edges: Edges, ahead: int | None) -> Edges:
    """Let each training wait for the round before those that it may be ahead of, to be complete."""
    if ahead is None:
        return edges

    def complete(round: int) -> tuple[Job, ...]:
        groups = range(line.global_models) if round > 0 else ()
        files = (artefacts.global_model(line, round, group) for group in groups)
        return tuple(job for file in files if (job := job_of(file)) is not None)

    held: dict[Job, tuple[Job, ...]] = {}
    for job, before in edges.items():
        more = complete(job.round - ahead - 1) if job.stage == "local_training" else ()
        held[job] = tuple(dict.fromkeys((*before, *more)))
    return held


def _clients(line: Line, edges: Edges, rounds: int) -> dict[Job, int]:
    """Return the client of each local training."""
    drawn = {
        t: participants_of(line.clients, line.participants, line.seed, t, binding(line))
        for t in range(1, rounds + 1)
    }
    trains = (job for job in edges if job.stage == "local_training")
    return {job: int(drawn[job.round][job.slot]) for job in trains}
