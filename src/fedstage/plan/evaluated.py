"""Names of what is evaluated, as they stand in file names and in metrics."""

from fedstage.errors import FedstageError
from fedstage.plan.members import parse_sampled, sampled_kind
from fedstage.settings.ensembles import (
    Aggregated,
    Bayesian,
    Clients,
    EnsembleTrainer,
    Evaluated,
    GlobalModel,
)

_PROBABILITIES = "_probabilities"


def evaluated_name(evaluated: Evaluated) -> str:
    """Name what is evaluated: global_model, clients, aggregated_2, bayesian_gaussian_10.

    Clients may be weighted (clients_by_samples), and any ensemble may average probabilities
    (aggregated_2_probabilities).
    """
    if isinstance(evaluated, GlobalModel):
        return evaluated.name
    suffix = _PROBABILITIES if evaluated.average == "probabilities" else ""
    return _name(evaluated) + suffix


def parse_evaluated(name: str) -> EnsembleTrainer:
    """Return the ensemble of a name that `evaluated_name` gave.

    Raises
    ------
    FedstageError
        If the name is no ensemble's.
    """
    stem = name.removesuffix(_PROBABILITIES)
    ensemble = _parse(stem)
    if ensemble is None:
        raise FedstageError(
            f"evaluated = {name!r}: use global_model, clients, clients_by_samples, aggregated_R, "
            "bayesian_gaussian_M or bayesian_dirichlet_M"
        )
    average = "logits" if stem == name else "probabilities"
    return ensemble.model_copy(update={"average": average})


def _name(ensemble: EnsembleTrainer) -> str:
    if isinstance(ensemble, Aggregated):
        return f"aggregated_{ensemble.checkpoints}"
    if isinstance(ensemble, Bayesian):
        return f"bayesian_{sampled_kind(ensemble)}"
    return "clients_by_samples" if ensemble.weights == "samples" else "clients"


def _parse(name: str) -> EnsembleTrainer | None:
    kind, _, rest = name.partition("_")
    if kind == "aggregated" and rest.isdecimal() and int(rest) > 0:
        return Aggregated(name="aggregated", checkpoints=int(rest))
    if name in ("clients", "clients_by_samples"):
        return Clients(name="clients", weights="samples" if rest else "uniform")
    if kind == "bayesian":
        try:
            return parse_sampled(rest)
        except FedstageError:
            return None
    return None
