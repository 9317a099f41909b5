"""Names of what is evaluated, as they stand in file names and in metrics."""

from fedstage.config import Aggregated, Clients, Evaluated
from fedstage.errors import FedstageError


def evaluated_name(evaluated: Evaluated) -> str:
    """Name what is evaluated: global_model, clients, clients_by_samples, aggregated_2."""
    if isinstance(evaluated, Aggregated):
        return f"aggregated_{evaluated.checkpoints}"
    if isinstance(evaluated, Clients) and evaluated.weights == "samples":
        return "clients_by_samples"
    return evaluated.name


def parse_evaluated(name: str) -> Clients | Aggregated:
    """Return the ensemble of a name that `evaluated_name` gave.

    Raises
    ------
    FedstageError
        If the name is no ensemble's.
    """
    kind, _, number = name.partition("_")
    if kind == "aggregated" and number.isdecimal() and int(number) > 0:
        return Aggregated(name="aggregated", checkpoints=int(number))
    if name in ("clients", "clients_by_samples"):
        return Clients(name="clients", weights="samples" if number else "uniform")
    raise FedstageError(
        f"evaluated = {name!r}: use global_model, clients, clients_by_samples or aggregated_R"
    )
