"""What a schedule says: seconds a round, and who is idle."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from graphlib import TopologicalSorter

from fedstage.plan.jobs import Edges, Job
from fedstage.results.simulation.availability import Window, available_seconds
from fedstage.results.simulation.events import SERVER, Span


@dataclass(frozen=True)
class Measures:
    """Of the schedule of a run.

    Attributes
    ----------
    round_seconds : float
        Average seconds a round: until the last round's global models are all there, over rounds.
    bound : float
        Critical path over rounds: what it would be if nobody ever waited for a worker or a client.
    server_idle : float
        Share of the time in which the server's workers neither ask models nor distil.
    clients_idle : float
        Share of the time in which a client is available and does not train, of all clients.
    """

    round_seconds: float
    bound: float
    server_idle: float
    clients_idle: float


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
    """Measure a schedule; the arguments are those of `simulate`, and its result."""
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
