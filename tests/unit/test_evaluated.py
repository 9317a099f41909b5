import pytest

from fedstage.config import Aggregated, Clients, GlobalModel
from fedstage.errors import FedstageError
from fedstage.evaluated import evaluated_name, parse_evaluated

NAMES = {
    "clients": Clients(name="clients"),
    "clients_by_samples": Clients(name="clients", weights="samples"),
    "aggregated_1": Aggregated(name="aggregated"),
    "aggregated_12": Aggregated(name="aggregated", checkpoints=12),
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
        "client", "Clients", "clients_2", "aggregated_²",
    ],
)  # fmt: skip
def test_names_that_are_no_ensembles_are_refused(name):
    with pytest.raises(FedstageError) as raised:
        parse_evaluated(name)
    assert str(raised.value).startswith(f"evaluated = {name!r}: use ")
    assert "aggregated_R" in str(raised.value)
