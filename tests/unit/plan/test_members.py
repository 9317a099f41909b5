"""Names of members and of scored ensembles, which lead back to their settings."""

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


def aggregated(**changes):
    return Aggregated(name="aggregated", **changes)


def bayesian(**changes):
    return Bayesian(name="bayesian", **changes)


def dirichlet(**changes):
    return bayesian(distribution="dirichlet", **changes)


def clients(**changes):
    return Clients(name="clients", **changes)


EACH, SPLIT = EachClient(name="each_client"), SplitModel(name="split_model")


def test_kinds_that_are_drawn_have_names_that_lead_back_to_them():
    for kind, ensemble in {
        "gaussian_10": bayesian(),
        "gaussian_3": bayesian(samples=3),
        "gaussian_10_as_released": bayesian(variant="as_released"),
        "dirichlet_10": dirichlet(),
        "dirichlet_7": dirichlet(samples=7),
    }.items():
        assert sampled_kind(ensemble) == kind
        assert parse_sampled(kind) == ensemble
        assert re.fullmatch(PATTERN, kind)
    # What a round makes anyway is not drawn.
    assert [parse_sampled(kind) for kind in ("clients", "aggregated")] == [None, None]


def test_names_that_are_no_kinds_are_refused():
    for kind in (
        "", "client", "gaussian", "gaussian_", "gaussian_0", "gaussian_01", "gaussian_1.5",
        "gaussian_3_0.5", "gaussian_3_as_published", "dirichlet_3_as_released", "dirichlet_3_",
        "dirichlet_3_0.5", "laplace_3",
    ):  # fmt: skip
        with pytest.raises(FedstageError, match=re.escape(f"members = {kind!r}")) as raised:
            parse_sampled(kind)
        assert "\n" not in str(raised.value)


def test_members_of_an_ensemble_of_which_only_temporal_ones_reach_back():
    for ensemble, kinds, rounds in (
        (clients(weights="samples"), ("clients",), 1),
        (aggregated(checkpoints=3), ("aggregated",), 3),
        (EACH, ("clients",), 1),
        (SPLIT, ("split",), 1),
        (bayesian(samples=3), ("aggregated", "clients", "gaussian_3"), 1),
    ):
        assert (member_kinds(ensemble), checkpoints(ensemble)) == (kinds, rounds), ensemble


def test_ensembles_have_names_that_lead_back_to_them():
    probabilities = {"average": "probabilities"}
    for name, ensemble in {
        "clients": clients(),
        "clients_by_samples": clients(weights="samples"),
        "clients_by_confidence": clients(weights="confidence"),
        "each_client": EACH,
        "split_model": SPLIT,
        "global_model": GlobalModel(name="global_model"),
        "aggregated_1": aggregated(),
        "aggregated_12": aggregated(checkpoints=12),
        "bayesian_gaussian_10": bayesian(),
        "bayesian_gaussian_3_as_released": bayesian(samples=3, variant="as_released"),
        "bayesian_dirichlet_10": dirichlet(),
        "clients_probabilities": clients(**probabilities),
        "clients_by_samples_probabilities": clients(weights="samples", **probabilities),
        "clients_by_confidence_probabilities": clients(weights="confidence", **probabilities),
        "aggregated_2_probabilities": aggregated(checkpoints=2, **probabilities),
        "bayesian_gaussian_10_probabilities": bayesian(**probabilities),
    }.items():
        assert evaluated_name(ensemble) == name
        assert parse_evaluated(name) == ensemble


def test_names_that_are_no_ensembles_are_refused():
    for name in (
        "global_model_probabilities", "", "aggregated", "aggregated_", "aggregated_0",
        "aggregated_-1",
        "aggregated_2.0", "aggregated_two", "aggregated_1_2", "clients_", "clients_by_size",
        "clients_by_", "clients_by_uniform", "clients_samples", "each_client_probabilities",
        "client", "Clients", "clients_2", "aggregated_²", "gaussian_10", "bayesian",
        "bayesian_clients", "bayesian_gaussian", "bayesian_gaussian_0", "_probabilities",
        "clients_logits", "clients_probabilities_probabilities",
    ):  # fmt: skip
        with pytest.raises(FedstageError) as raised:
            parse_evaluated(name)
        assert str(raised.value).startswith(f"evaluated = {name!r}: use ")
        allowed = ("global_model", "each_client", "clients_by_confidence", "aggregated_R")
        assert all(word in str(raised.value) for word in allowed)
