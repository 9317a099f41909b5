"""Names of members and of scored ensembles, which lead back to their settings."""

import re

from fedstage.plan.members import (
    PATTERN,
    evaluated_name,
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
