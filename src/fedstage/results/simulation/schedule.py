"""The schedule of a recipe's jobs on its clients and a server: durations and measures."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from graphlib import TopologicalSorter
from math import log, sqrt

from fedstage.data.participation import participants_of
from fedstage.errors import FedstageError
from fedstage.plan.jobs import Edges, Job, job_of, jobs_of, members
from fedstage.plan.participants import groups_drawn
from fedstage.plan.staleness import is_withdrawn
from fedstage.plan.training import global_model
from fedstage.randomness import Key, numpy_generator
from fedstage.results.simulation.availability import Window, available_seconds, windows
from fedstage.results.simulation.events import AGGREGATOR, SERVER, Span, simulate
from fedstage.settings.recipes import Recipe
from fedstage.settings.simulation import Seconds, Simulation, Varying


@dataclass(frozen=True)
class Measures:
    """Measures of a run's schedule."""

    #: Seconds until all global models of the last round exist, over the number of rounds.
    round_seconds: float
    #: Critical path over the number of rounds: the same if no job ever waited for a worker or
    #: client.
    bound: float
    #: Share of the time in which the server's workers neither predict nor distil.
    server_idle: float
    #: Share of the clients' available time in which they do not train.
    clients_idle: float


@dataclass(frozen=True)
class Schedule:
    """The places and times of a recipe's jobs, and their measures."""

    spans: dict[Job, Span]
    measures: Measures


def schedule(recipe: Recipe, rounds: int, settings: Simulation) -> Schedule:
    """Simulate the rounds of a recipe, with its participants on their clients."""
    if recipe.aggregation.secure:
        raise FedstageError(
            "simulation: aggregation.secure: must be null, because its steps have no seconds here"
        )
    edges = _held_back(recipe, jobs_of(recipe, rounds), settings.rounds_ahead)
    clients = _clients(recipe, edges, rounds)
    seconds = seconds_of(recipe, edges, clients, settings)
    at_once = ("aggregation", "local_training")  # the latter without a client
    places = {
        job: clients.get(job, AGGREGATOR if job.stage in at_once else SERVER) for job in edges
    }

    def intervals(place: int) -> Iterator[Window]:
        return windows(settings.availability if place >= 0 else None, recipe.seed, place)

    # A group aggregates one round after the other, so a worker for each group is enough.
    workers = {SERVER: settings.servers, AGGREGATOR: recipe.global_models}
    spans = simulate(edges, seconds, places, intervals, workers)
    measures = measure(
        edges,
        seconds,
        spans,
        intervals,
        rounds=rounds,
        servers=settings.servers,
        clients=recipe.clients,
    )
    return Schedule(spans, measures)


def _held_back(recipe: Recipe, edges: Edges, ahead: int | None) -> Edges:
    """Make each training wait until all groups have completed round t - 1 - `ahead`."""
    if ahead is None:
        return edges

    def complete(round_: int) -> tuple[Job, ...]:
        groups = range(recipe.global_models) if round_ > 0 else ()
        files = (global_model(recipe, round_, group) for group in groups)
        return tuple(job for file in files if (job := job_of(file)) is not None)

    return {
        job: tuple(dict.fromkeys((*before, *complete(job.round - ahead - 1))))
        if job.stage == "local_training"
        else before
        for job, before in edges.items()
    }


def _clients(recipe: Recipe, edges: Edges, rounds: int) -> dict[Job, int]:
    """Return the client of each local training, except for participants that are withdrawn."""
    if recipe.participation == "by_samples":
        raise FedstageError(
            f"simulation: participation = {recipe.participation!r}: must be uniform or in_turn, "
            "because the partition is not known before it is made"
        )
    if recipe.participation == "poisson":
        raise FedstageError(
            "simulation: participation = 'poisson': must be uniform or in_turn, because most "
            "participants are absent where each client takes part by itself"
        )
    if groups_drawn(recipe):
        raise FedstageError(
            "simulation: client_groups = 'drawn': must be 'by_index', because most participants "
            "of groups that are drawn are absent"
        )
    numbers = (recipe.clients, recipe.participants, recipe.seed)
    turns = recipe.participation == "in_turn"
    drawn = {t: participants_of(*numbers, t, turns) for t in range(1, rounds + 1)}
    trains = (job for job in edges if job.stage == "local_training")
    return {
        job: int(drawn[job.round][job.participant])
        for job in trains
        if not is_withdrawn(recipe, job.round, job.participant)
    }


def seconds_of(
    recipe: Recipe, edges: Edges, clients: Mapping[Job, int], settings: Simulation
) -> dict[Job, float]:
    """Return the seconds of each job: constants, or draws from keyed generators.

    The keys do not contain the method, so methods with the same seed share the durations of their
    common jobs: in round t, client n trains for the same time in each method. `clients` has the
    client of each local training.
    """
    return {job: _seconds(recipe, job, clients, settings) for job in edges}


def _seconds(recipe: Recipe, job: Job, clients: Mapping[Job, int], settings: Simulation) -> float:
    if job.stage == "local_training":
        if job not in clients:  # withdrawn: it takes no time
            return 0.0
        client = clients[job]
        variation = settings.clients_differ
        around_one = Varying(mean=1.0, variation=variation) if variation else 1.0
        slowness = _draw(around_one, recipe.seed, "slowness", client)
        return slowness * _draw(settings.local_training, recipe.seed, job.stage, job.round, client)
    drawn = _draw(getattr(settings, job.stage), recipe.seed, job.stage, job.round, job.group)
    return drawn * (members(job) if job.stage == "logits" else 1)


def _draw(seconds: Seconds, seed: int, *key: Key) -> float:
    """Draw from the lognormal distribution with this mean and coefficient of variation."""
    if not isinstance(seconds, Varying):
        return float(seconds)
    variance = log(1 + seconds.variation**2)
    generator = numpy_generator(seed, "simulation", *key)
    return float(generator.lognormal(log(seconds.mean) - variance / 2, sqrt(variance)))


def measure(
    edges: Edges,
    seconds: Mapping[Job, float],
    spans: Mapping[Job, Span],
    windows: Callable[[int], Iterator[Window]],
    *,
    rounds: int,
    servers: int,
    clients: int,
) -> Measures:
    """Measure `spans`, the result of `simulate` for the other arguments."""
    end = max(span.end for span in spans.values())
    on_server = sum(seconds[job] for job, span in spans.items() if span.place == SERVER)
    on_clients = sum(seconds[job] for job, span in spans.items() if span.place >= 0)
    available = sum(available_seconds(windows(client), end) for client in range(clients))
    return Measures(
        round_seconds=end / rounds,
        bound=critical_path(edges, seconds) / rounds,
        server_idle=_share(servers * end - on_server, servers * end),
        clients_idle=_share(available - on_clients, available),
    )


def critical_path(edges: Edges, seconds: Mapping[Job, float]) -> float:
    """Return the seconds of the longest chain of jobs that wait for one another."""
    ends: dict[Job, float] = {}
    for job in TopologicalSorter(edges).static_order():
        ends[job] = seconds[job] + max((ends[before] for before in edges[job]), default=0.0)
    return max(ends.values())


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
