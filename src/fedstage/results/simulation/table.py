"""The table of simulated schedules: seconds a round, and idle times."""

from collections.abc import Sequence
from statistics import mean

from fedstage.results.metrics import spread
from fedstage.results.runs_file import ExperimentRuns
from fedstage.results.simulation.schedule import Measures
from fedstage.results.tables.exact import Cell
from fedstage.results.tables.labels import mean_and_std
from fedstage.settings.simulation import Seconds, Varying

#: The head, factor and digits of each measure.
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


def describe(experiment: ExperimentRuns) -> str:
    """Return a sentence or two about the settings of the simulation."""
    settings = experiment.simulation
    stages = ("local_training", "aggregation", "logits", "distillation")
    seconds = ", ".join(f"{name} {_describe(getattr(settings, name))}" for name in stages)
    clients = "always available"
    if settings.availability:
        clients = (
            f"each available {100 * settings.availability.share:g} % of the time, in intervals of "
            f"about {settings.availability.interval:g} s"
        )
    text = (
        f"Experiment `{experiment.experiment}` at scale `{experiment.scale}`: simulated, without "
        f"training. Seconds of a job: {seconds} (logits: for each member). Workers of the server: "
        f"{settings.servers}. Clients: {clients}; deviation of their slowness: "
        f"{settings.clients_differ:g}."
    )
    if settings.rounds_ahead is None:
        return text
    rounds = settings.rounds_ahead
    return f"{text} Groups go on at most {rounds} rounds beyond the first that is not complete."


def _describe(seconds: Seconds) -> str:
    if isinstance(seconds, Varying):
        return f"{seconds.mean:g} ± {seconds.mean * seconds.variation:g}"
    return f"{seconds:g}"


def as_texts(measures: Sequence[Measures]) -> dict[str, str]:
    """Return the texts of a row, from the schedules of its seeds."""
    texts: dict[str, str] = {}
    for name, (head, factor, digits) in _COLUMNS.items():
        values = [factor * getattr(one, name) for one in measures]
        texts[head] = mean_and_std(mean(values), spread(values), digits)
    return texts


def as_numbers(measures: Sequence[Measures]) -> dict[str, Cell]:
    """Return the exact numbers of a row: means, deviations, and the number of seeds."""
    numbers: dict[str, Cell] = {}
    for name in _COLUMNS:
        values = [getattr(one, name) for one in measures]
        numbers[name], numbers[f"{name}_std"] = mean(values), spread(values)
    return numbers | {"seeds": len(measures)}
