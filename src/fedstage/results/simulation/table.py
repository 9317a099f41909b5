"""The table of simulated schedules: seconds per round, and idle times."""

from fedstage.results.runs_file import ExperimentRuns
from fedstage.results.tables.columns import Column, with_deviation
from fedstage.settings.simulation import Seconds, Varying

#: The measures of a schedule.
COLUMNS = (
    Column("round_seconds", "Seconds a round",
        "until the last round's global models are all there, divided by the number of rounds; mean "
        "± standard deviation (n−1) over seeds.", with_deviation(1)),
    Column("bound", "Critical path",
        "seconds a round of the longest chain of jobs that wait for one another: what it would be "
        "with a worker for every job, and clients that are free and available at once.",
        with_deviation(1)),
    Column("server_idle", "Server idle (%)",
        "share of the time in which a worker of the server neither asks models nor distils.",
        with_deviation(1, 100.0)),
    Column("clients_idle", "Clients idle (%)",
        "share of the time in which a client is available and does not train, over all clients.",
        with_deviation(1, 100.0)),
)  # fmt: skip


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
        f"simulated, without training. Seconds of a job: {seconds} (logits: for each member). "
        f"Workers of the server: {settings.servers}. Clients: {clients}; deviation of their "
        f"slowness: {settings.clients_differ:g}."
    )
    if settings.rounds_ahead is None:
        return text
    rounds = settings.rounds_ahead
    return f"{text} Groups go on at most {rounds} rounds beyond the first that is not complete."


def _describe(seconds: Seconds) -> str:
    if isinstance(seconds, Varying):
        return f"{seconds.mean:g} ± {seconds.mean * seconds.variation:g}"
    return f"{seconds:g}"
