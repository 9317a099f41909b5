"""Discrete-event simulation: which job runs when, on clients and on a server.

A job is ready when all that it waits for has ended. Every place, a client say, takes the lowest of
its ready jobs (earlier rounds first, then lower groups) as soon as it is available and has a worker
that is free; a job that has begun goes on to its end. What ends at one moment has
ended before anything begins at that moment, so the order in which events are found does not matter.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TypeVar

from fedstage.plan.jobs import Edges, Job
from fedstage.results.simulation.availability import Calendar, Window

T = TypeVar("T")

#: Places that are no client: of logits and distillations, which the server's workers share, and of
#: aggregations, which are small sums and wait for no worker.
SERVER, AGGREGATOR = -1, -2


@dataclass(frozen=True)
class Span:
    """Where and when a job runs.

    Attributes
    ----------
    place : int
        The client, or one of the other places.
    worker : int
        Which of the place's workers; 0 for clients.
    start, end : float
        Seconds from the start of the first round.
    """

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
    """Return where and when each job runs.

    Parameters
    ----------
    edges : mapping
        What each job waits for.
    seconds, places : mapping
        How long each job works, and where.
    windows : callable
        The intervals in which a place is available, in the order of time.
    workers : mapping
        How many jobs a place does at a time; one that is not in it, one.
    """
    waits_for = {job: set(before) for job, before in edges.items()}
    followers = _followers(edges)
    state = {
        place: _Place(_calendar(windows(place)), list(range(workers.get(place, 1))))
        for place in {*places.values()}
    }
    for job, before in waits_for.items():
        if not before:
            heappush(state[places[job]].ready, job)
    spans: dict[Job, Span] = {}
    ends: list[tuple[float, Job]] = []
    # Places at which something may begin at a time, beside those where a job ends.
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
        # A job without duration ends in the moment in which it begins: then the others wait.
        while touched and not (ends and ends[0][0] == time):
            place = min(touched)
            touched.remove(place)
            for job, span in _begin(place, state[place], seconds, time):
                spans[job] = span
                heappush(ends, (span.end, job))
            if state[place].ready and state[place].free:  # nothing can begin: the client is away
                heappush(wakes, (state[place].calendar.opens(time), place))
    return spans


def _followers(edges: Edges) -> dict[Job, list[Job]]:
    """Return the jobs that wait for each job."""
    found: dict[Job, list[Job]] = defaultdict(list)
    for job, before in edges.items():
        for one in before:
            found[one].append(job)
    return found


def _calendar(intervals: Iterator[Window]) -> Calendar:
    return Calendar(intervals, next(intervals))


def _due(events: list[tuple[float, T]], time: float) -> list[T]:
    """Take what happens at a time from a heap of events."""
    found = []
    while events and events[0][0] == time:
        found.append(heappop(events)[1])
    return found


def _begin(
    place: int, state: _Place, seconds: Mapping[Job, float], time: float
) -> Iterator[tuple[Job, Span]]:
    """Begin ready jobs while the place is available and has free workers."""
    while state.ready and state.free and state.calendar.opens(time) == time:
        job, worker = heappop(state.ready), heappop(state.free)
        yield job, Span(place, worker, time, state.calendar.finish(time, seconds[job]))
