"""Discrete-event simulation of jobs on clients and a server.

A job is ready when all jobs that it waits for have ended. Every place, such as a client, takes the
lowest of its ready jobs (earlier rounds first, then lower groups) as soon as it is available and
has a free worker. A job that has begun runs to its end. All jobs that end at one moment do so
before any begins, so the order in which events are processed does not matter.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TypeVar

from fedstage.plan.jobs import Edges, Job
from fedstage.results.simulation.availability import Calendar, Window

T = TypeVar("T")

#: Places in addition to the clients: the server's workers, for logits and distillations, and
#: aggregations, which are small sums and wait for no worker.
SERVER, AGGREGATOR = -1, -2


@dataclass(frozen=True)
class Span:
    """The place, worker, start and end of a job, in seconds from the start of the first round."""

    place: int
    worker: int
    start: float
    end: float


@dataclass
class _Place:
    """A place: its intervals, its free workers and its ready jobs, both as heaps."""

    calendar: Calendar
    free: list[int]
    ready: list[Job] = field(default_factory=list)


def simulate(
    edges: Edges,
    seconds: Mapping[Job, float],
    places: Mapping[Job, int],
    windows: Callable[[int], Iterator[Window]],
    workers: Mapping[int, int],
) -> dict[Job, Span]:
    """Return the place and time of each job.

    Parameters
    ----------
    edges : mapping
        The jobs that each job waits for.
    seconds, places : mapping
        The duration of each job, and its place.
    windows : callable
        The intervals in which a place is available, in chronological order.
    workers : mapping
        The number of workers of a place, by default one.
    """
    waits_for = {job: set(before) for job, before in edges.items()}
    followers: dict[Job, list[Job]] = defaultdict(list)
    state: dict[int, _Place] = {}
    for place in {*places.values()}:
        intervals = windows(place)
        calendar = Calendar(intervals, next(intervals))
        state[place] = _Place(calendar, list(range(workers.get(place, 1))))
    for job, before in edges.items():
        for earlier in before:
            followers[earlier].append(job)
        if not before:
            heappush(state[places[job]].ready, job)
    spans: dict[Job, Span] = {}
    ends: list[tuple[float, Job]] = []
    # Times at which a place may begin jobs, other than the ends of its own jobs.
    wakes = [(0.0, place) for place in sorted(state)]
    touched: set[int] = set()
    while ends or wakes:
        time = min(events[0][0] for events in (ends, wakes) if events)
        touched.update(_due(wakes, time))
        for ended in _due(ends, time):
            heappush(state[places[ended]].free, spans[ended].worker)
            touched.add(places[ended])
            for job in followers[ended]:
                waits_for[job].remove(ended)
                if not waits_for[job]:
                    heappush(state[places[job]].ready, job)
                    touched.add(places[job])
        # A job without duration ends at the moment when it begins: then the others wait.
        while touched and not (ends and ends[0][0] == time):
            place = min(touched)
            touched.remove(place)
            for job, span in _begin(place, state[place], seconds, time):
                spans[job] = span
                heappush(ends, (span.end, job))
            if state[place].ready and state[place].free:  # no job can begin: the client is away
                heappush(wakes, (state[place].calendar.opens(time), place))
    return spans


def _due(events: list[tuple[float, T]], time: float) -> list[T]:
    """Remove the events of a time from a heap, and return them."""
    due = []
    while events and events[0][0] == time:
        due.append(heappop(events)[1])
    return due


def _begin(
    place: int, state: _Place, seconds: Mapping[Job, float], time: float
) -> Iterator[tuple[Job, Span]]:
    """Begin ready jobs while the place is available and has free workers."""
    while state.ready and state.free and state.calendar.opens(time) == time:
        job, worker = heappop(state.ready), heappop(state.free)
        yield job, Span(place, worker, time, state.calendar.finish(time, seconds[job]))
