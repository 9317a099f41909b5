"""The table of simulated schedules: seconds a round, and who is idle."""

from collections.abc import Sequence

from fedstage.results.definitions import Definition
from fedstage.results.simulation.measures import Measures
from fedstage.results.tables.plain import Cell, mean_and_deviation, with_deviation
from fedstage.settings.simulation import Seconds, Varying

#: What is measured of a schedule: its heading, factor and digits.
_COLUMNS = {
    "round_seconds": ("Seconds a round", 1.0, 1),
    "bound": ("Critical path", 1.0, 1),
    "server_idle": ("Server idle (%)", 100.0, 1),
    "clients_idle": ("Clients idle (%)", 100.0, 1),
}
LEGEND = {
    "Seconds a round": (
        "until the last round's global models are all there, divided by the number of rounds; mean "
        "± standard deviation (n−1) over seeds."
    ),
    "Critical path": (
        "seconds a round of the longest chain of jobs that wait for one another: what it would be "
        "with a worker for every job, and clients that are free and available at once."
    ),
    "Server idle (%)": (
        "share of the time in which a worker of the server neither asks models nor distils."
    ),
    "Clients idle (%)": (
        "share of the time in which a client is available and does not train, over all clients."
    ),
}


def describe(experiment: Definition) -> str:
    """Return a sentence or two about what was simulated."""
    settings = experiment.simulation
    given = ", ".join(
        f"{name} {_describe(getattr(settings, name))}"
        for name in ("local_training", "aggregation", "logits", "distillation")
    )
    present = settings.availability
    clients = (
        f"each available {100 * present.share:g} % of the time, in intervals of about "
        f"{present.interval:g} s"
        if present
        else "always available"
    )
    return (
        f"Experiment `{experiment.experiment}` at scale `{experiment.scale}`: simulated, without "
        f"training. Seconds of a job: {given} (logits: for each member). Workers of the server: "
        f"{settings.servers}. Clients: {clients}; deviation of their slowness: "
        f"{settings.clients_differ:g}.{_describe_ahead(settings.rounds_ahead)}"
    )


def _describe_ahead(rounds: int | None) -> str:
    if rounds is None:
        return ""
    return f" Groups go on at most {rounds} rounds beyond the first that is not complete."


def _describe(seconds: Seconds) -> str:
    if isinstance(seconds, Varying):
        return f"{seconds.mean:g} ± {seconds.mean * seconds.variation:g}"
    return f"{seconds:g}"


def as_texts(measures: Sequence[Measures]) -> dict[str, str]:
    """Return the cells of a row for people, from the schedules of its seeds."""
    return {
        head: with_deviation([factor * getattr(one, name) for one in measures], digits)
        for name, (head, factor, digits) in _COLUMNS.items()
    }


def as_numbers(measures: Sequence[Measures]) -> dict[str, Cell]:
    """Return the cells of a row as exact numbers: means, deviations, and the number of seeds."""
    numbers: dict[str, Cell] = {}
    for name in _COLUMNS:
        values = [getattr(one, name) for one in measures]
        numbers[name], numbers[f"{name}_std"] = mean_and_deviation(values)
    return numbers | {"seeds": len(measures)}
