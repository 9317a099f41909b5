import re

import pytest

from fedstage.errors import FedstageError
from fedstage.plan.members import (
    PATTERN,
    checkpoints,
    evaluated_name,
    member_kinds,
    parse_evaluated,
    parse_sampled,
    sampled_kind,
)
from fedstage.settings.ensembles import (
    Aggregated,
    Bayesian,
    Clients,
    EachClient,
    GlobalModel,
    SplitModel,
)


def bayesian(**changes):
    return Bayesian(name="bayesian", **changes)


# --- kinds of members -----------------------------------------------------------------------------

KINDS = {
    "gaussian_10": bayesian(),
    "gaussian_3": bayesian(samples=3),
    "gaussian_10_as_released": bayesian(variant="as_released"),
    "dirichlet_10": bayesian(distribution="dirichlet"),
    "dirichlet_7_0.5": bayesian(distribution="dirichlet", samples=7, concentration=0.5),
    "dirichlet_10_100.0": bayesian(distribution="dirichlet", concentration=100.0),
    "dirichlet_10_0.00001": bayesian(distribution="dirichlet", concentration=1e-5),
    "dirichlet_10_100000000000000000000.0": bayesian(distribution="dirichlet", concentration=1e20),
}


@pytest.mark.parametrize(("kind", "ensemble"), KINDS.items())
def test_kinds_that_are_drawn_have_names_that_lead_back_to_them(kind, ensemble):
    assert sampled_kind(ensemble) == kind
    assert parse_sampled(kind) == ensemble
    assert re.fullmatch(PATTERN, kind)


def test_numbers_of_all_digits_stand_in_the_name():
    near = [bayesian(distribution="dirichlet", concentration=0.1 + n * 1e-12) for n in range(3)]
    assert len({sampled_kind(ensemble) for ensemble in near}) == 3
    assert [parse_sampled(sampled_kind(ensemble)) for ensemble in near] == near


@pytest.mark.parametrize("kind", ["clients", "aggregated"])
def test_kinds_that_a_round_makes_anyway_are_not_drawn(kind):
    assert parse_sampled(kind) is None


@pytest.mark.parametrize(
    "kind",
    [
        "", "client", "gaussian", "gaussian_", "gaussian_0", "gaussian_01", "gaussian_1.5",
        "gaussian_3_0.5", "gaussian_3_as_published", "dirichlet_3_as_released", "dirichlet_3_",
        "dirichlet_3_1e-05", "dirichlet_3_0.5.5", "dirichlet_3_0.0", "laplace_3",
    ],
)  # fmt: skip
def test_names_that_are_no_kinds_are_refused(kind):
    with pytest.raises(FedstageError, match=re.escape(f"members = {kind!r}")) as raised:
        parse_sampled(kind)
    assert "\n" not in str(raised.value)


def test_members_of_an_ensemble():
    assert member_kinds(Clients(name="clients", weights="samples")) == ("clients",)
    assert member_kinds(Aggregated(name="aggregated", checkpoints=3)) == ("aggregated",)
    assert member_kinds(EachClient(name="each_client")) == ("clients",)
    assert member_kinds(bayesian(samples=3)) == ("aggregated", "clients", "gaussian_3")


def test_only_temporal_ensembles_reach_back():
    assert checkpoints(Aggregated(name="aggregated", checkpoints=3)) == 3
    assert member_kinds(SplitModel(name="split_model")) == ("split",)
    assert checkpoints(EachClient(name="each_client")) == 1
    assert checkpoints(Clients(name="clients")) == checkpoints(bayesian()) == 1


# --- what is evaluated ----------------------------------------------------------------------------

NAMES = {
    "clients": Clients(name="clients"),
    "clients_by_samples": Clients(name="clients", weights="samples"),
    "clients_by_confidence": Clients(name="clients", weights="confidence"),
    "each_client": EachClient(name="each_client"),
    "split_model": SplitModel(name="split_model"),
    "aggregated_1": Aggregated(name="aggregated"),
    "aggregated_12": Aggregated(name="aggregated", checkpoints=12),
    "bayesian_gaussian_10": bayesian(),
    "bayesian_gaussian_3_as_released": bayesian(samples=3, variant="as_released"),
    "bayesian_dirichlet_10_0.5": bayesian(distribution="dirichlet", concentration=0.5),
    "clients_probabilities": Clients(name="clients", average="probabilities"),
    "clients_by_samples_probabilities": Clients(
        name="clients", weights="samples", average="probabilities"
    ),
    "clients_by_confidence_probabilities": Clients(
        name="clients", weights="confidence", average="probabilities"
    ),
    "aggregated_2_probabilities": Aggregated(
        name="aggregated", checkpoints=2, average="probabilities"
    ),
    "bayesian_gaussian_10_probabilities": bayesian(average="probabilities"),
}


@pytest.mark.parametrize(("name", "ensemble"), NAMES.items())
def test_ensembles_have_names_that_lead_back_to_them(name, ensemble):
    assert evaluated_name(ensemble) == name
    assert parse_evaluated(name) == ensemble


def test_global_model_has_its_name():
    model = GlobalModel(name="global_model")
    assert evaluated_name(model) == "global_model"
    assert parse_evaluated("global_model") == model


@pytest.mark.parametrize(
    "name",
    [
        "global_model_probabilities", "", "aggregated", "aggregated_", "aggregated_0",
        "aggregated_-1",
        "aggregated_2.0", "aggregated_two", "aggregated_1_2", "clients_", "clients_by_size",
        "clients_by_", "clients_by_uniform", "clients_samples", "each_client_probabilities",
        "client", "Clients", "clients_2", "aggregated_²", "gaussian_10", "bayesian",
        "bayesian_clients", "bayesian_gaussian", "bayesian_gaussian_0", "_probabilities",
        "clients_logits", "clients_probabilities_probabilities",
    ],
)  # fmt: skip
def test_names_that_are_no_ensembles_are_refused(name):
    with pytest.raises(FedstageError) as raised:
        parse_evaluated(name)
    assert str(raised.value).startswith(f"evaluated = {name!r}: use ")
    allowed = ("global_model", "each_client", "clients_by_confidence", "aggregated_R")
    assert all(word in str(raised.value) for word in allowed)
