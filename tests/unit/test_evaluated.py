import pytest

from fedstage.errors import FedstageError
from fedstage.plan.evaluated import evaluated_name, parse_evaluated
from fedstage.settings.ensembles import Aggregated, Bayesian, Clients, GlobalModel

NAMES = {
    "clients": Clients(name="clients"),
    "clients_by_samples": Clients(name="clients", weights="samples"),
    "aggregated_1": Aggregated(name="aggregated"),
    "aggregated_12": Aggregated(name="aggregated", checkpoints=12),
    "bayesian_gaussian_10": Bayesian(name="bayesian"),
    "bayesian_gaussian_3_as_released": Bayesian(name="bayesian", samples=3, variant="as_released"),
    "bayesian_dirichlet_10_0.5": Bayesian(
        name="bayesian", distribution="dirichlet", concentration=0.5
    ),
    "clients_probabilities": Clients(name="clients", average="probabilities"),
    "clients_by_samples_probabilities": Clients(
        name="clients", weights="samples", average="probabilities"
    ),
    "aggregated_2_probabilities": Aggregated(
        name="aggregated", checkpoints=2, average="probabilities"
    ),
    "bayesian_gaussian_10_probabilities": Bayesian(name="bayesian", average="probabilities"),
}


@pytest.mark.parametrize(("name", "ensemble"), NAMES.items())
def test_ensembles_have_names_that_lead_back_to_them(name, ensemble):
    assert evaluated_name(ensemble) == name
    assert parse_evaluated(name) == ensemble


def test_global_model_has_its_name():
    assert evaluated_name(GlobalModel(name="global_model")) == "global_model"


@pytest.mark.parametrize(
    "name",
    [
        "global_model", "", "aggregated", "aggregated_", "aggregated_0", "aggregated_-1",
        "aggregated_2.0", "aggregated_two", "aggregated_1_2", "clients_", "clients_by_size",
        "client", "Clients", "clients_2", "aggregated_²", "gaussian_10", "bayesian",
        "bayesian_clients", "bayesian_gaussian", "bayesian_gaussian_0", "_probabilities",
        "clients_logits", "clients_probabilities_probabilities",
    ],
)  # fmt: skip
def test_names_that_are_no_ensembles_are_refused(name):
    with pytest.raises(FedstageError) as raised:
        parse_evaluated(name)
    assert str(raised.value).startswith(f"evaluated = {name!r}: use ")
    assert "aggregated_R" in str(raised.value)
