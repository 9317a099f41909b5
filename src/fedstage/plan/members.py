"""Kinds of ensemble members, which name the files of their logits.

``clients`` and ``aggregated`` are models of every round, ``own`` are those that clients predict
with, and ``split`` are the clients' extractors followed by the server's model. A kind such as
``gaussian_10`` or ``dirichlet_10`` stands for models drawn for the ensemble, whose name gives the
settings (`Bayesian`). Files of one kind are shared by all ensembles that have such members.
"""

import re
from functools import cache
from typing import Any, cast, get_args

import yaml

from fedstage.errors import FedstageError
from fedstage.settings.base import alternatives
from fedstage.settings.ensembles import (
    Aggregated,
    Bayesian,
    Clients,
    Ensemble,
    EnsembleTrainer,
    Evaluated,
    GlobalModel,
    OneByOne,
)
from fedstage.settings.validation import validate

#: The pattern of a kind's name.
PATTERN = r"aggregated|clients|own|split|gaussian_[1-9]\d*(?:_as_released)?|dirichlet_[1-9]\d*"


def member_kinds(ensemble: EnsembleTrainer | OneByOne) -> tuple[str, ...]:
    """Return the kinds of an ensemble's members, the same in each round and group."""
    drawn = (sampled_kind(ensemble),) if isinstance(ensemble, Bayesian) else ()
    return (*ensemble.members, *drawn)


def sampled_kind(ensemble: Bayesian) -> str:
    """Name the drawn models: gaussian_10, gaussian_10_as_released, dirichlet_10."""
    name = f"{ensemble.distribution}_{ensemble.samples}"
    return name if ensemble.variant == "as_published" else f"{name}_{ensemble.variant}"


@cache
def parse_sampled(kind: str) -> Bayesian | None:
    """Return the settings of a drawn kind, None for another kind; FedstageError for no kind."""
    if not re.fullmatch(PATTERN, kind):
        allowed = "aggregated, clients, own, split, gaussian_M, dirichlet_M"
        raise FedstageError(f"members = {kind!r}: use {allowed}")
    if "_" not in kind:
        return None
    distribution, samples, *rest = kind.split("_", 2)
    settings: dict[str, Any] = {"distribution": distribution, "samples": int(samples)}
    if rest:
        settings["variant"] = rest[0]
    return validate(Bayesian, {"name": "bayesian", **settings}, f"members = {kind!r}")


_PROBABILITIES = "_probabilities"


def evaluated_name(evaluated: Evaluated) -> str:
    """Name the evaluated models: global_model, each_client, own_models, clients, aggregated_2, ...

    Clients may be weighted (clients_by_samples, clients_by_confidence), and any ensemble may
    average probabilities (aggregated_2_probabilities).
    """
    if isinstance(evaluated, GlobalModel | OneByOne):
        return evaluated.name
    suffix = _PROBABILITIES if evaluated.average == "probabilities" else ""
    return _name(evaluated) + suffix


def parse_evaluated(name: str) -> Evaluated:
    """Return the models that `evaluated_name` gives this name; FedstageError if there are none."""
    stem = name.removesuffix(_PROBABILITIES)
    found = _parse(stem)
    if stem == name and isinstance(found, GlobalModel | OneByOne):
        return found
    if not isinstance(found, Ensemble):
        raise FedstageError(
            f"evaluated = {name!r}: use global_model, each_client, own_models, split_model, "
            "clients, clients_by_samples, clients_by_confidence, aggregated_R, "
            "bayesian_gaussian_M or bayesian_dirichlet_M"
        )
    average = "logits" if stem == name else "probabilities"
    return found.model_copy(update={"average": average})


def _name(ensemble: Ensemble) -> str:
    if isinstance(ensemble, Aggregated):
        return f"aggregated_{ensemble.checkpoints}"
    if isinstance(ensemble, Bayesian):
        return f"bayesian_{sampled_kind(ensemble)}"
    if isinstance(ensemble, Clients):
        return "clients" + ("" if ensemble.weights == "uniform" else f"_by_{ensemble.weights}")
    settings = ensemble.model_dump(mode="json", exclude_defaults=True, exclude={"name", "average"})
    return ".".join([ensemble.name, *(f"{key}={value}" for key, value in settings.items())])


def _parse(name: str) -> Evaluated | None:
    if found := re.fullmatch(r"aggregated_([1-9]\d*)", name):
        return Aggregated(name="aggregated", checkpoints=int(found[1]))
    if found := re.fullmatch(r"clients(?:_by_(samples|confidence))?", name):
        return Clients.model_validate({"name": "clients", "weights": found[1] or "uniform"})
    if found := re.fullmatch(rf"bayesian_({PATTERN})", name):
        return parse_sampled(found[1])
    return _parse_pairs(name)


def _parse_pairs(name: str) -> Evaluated | None:
    """Return the models of a name such as ``median.trim=0.1``; None if there are none."""
    kind, *pairs = re.split(r"\.(?=[a-z]\w*=)", name)
    named = (
        (get_args(one.model_fields["name"].annotation), one) for one in alternatives(Evaluated)
    )
    chosen = next((one for names, one in named if kind in names), None)
    if chosen is None or chosen in (Clients, Aggregated, Bayesian):
        return None
    parts = (pair.partition("=") for pair in pairs)
    settings = {key: yaml.safe_load(value) for key, _, value in parts}
    found = validate(chosen, {"name": kind, **settings}, f"evaluated = {name!r}")
    return cast(Evaluated, found)
