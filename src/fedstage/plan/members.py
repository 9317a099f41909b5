"""Kinds of ensemble members, as they stand in the names of their logits' files.

``clients`` and ``aggregated`` are models that a round makes anyway; a kind such as ``gaussian_10``
or ``dirichlet_10_0.5`` is models that are drawn for the ensemble (`Bayesian`), and its name says
all that they depend on. Files of one kind are shared by every ensemble that has such members.
"""

import re
from decimal import Decimal
from functools import cache
from typing import Any

from fedstage.errors import FedstageError
from fedstage.settings.ensembles import Aggregated, Bayesian, Clients, EnsembleTrainer
from fedstage.settings.validation import validate

#: What the name of a kind looks like.
PATTERN = r"aggregated|clients|gaussian_[1-9]\d*(?:_as_released)?|dirichlet_[1-9]\d*(?:_\d+\.\d+)?"


def member_kinds(ensemble: EnsembleTrainer) -> tuple[str, ...]:
    """Return the kinds of members that an ensemble has of each round and group."""
    if isinstance(ensemble, Clients):
        return ("clients",)
    if isinstance(ensemble, Bayesian):
        return ("aggregated", "clients", sampled_kind(ensemble))
    return ("aggregated",)


def checkpoints(ensemble: EnsembleTrainer) -> int:
    """Return of how many rounds an ensemble has members."""
    return ensemble.checkpoints if isinstance(ensemble, Aggregated) else 1


def sampled_kind(ensemble: Bayesian) -> str:
    """Name the models that are drawn: gaussian_10, gaussian_10_as_released, dirichlet_10_0.5."""
    name = f"{ensemble.distribution}_{ensemble.samples}"
    if ensemble.variant != "as_published":
        return f"{name}_{ensemble.variant}"
    if ensemble.concentration == 1.0:
        return name
    # Not the number as Python writes it: 1e-05 has a sign, and `-` ends the kind in a file's name.
    number = f"{Decimal(repr(ensemble.concentration)):f}"
    return f"{name}_{number}" if "." in number else f"{name}_{number}.0"


@cache
def parse_sampled(kind: str) -> Bayesian | None:
    """Return the settings of a kind that is drawn, None for one that is not.

    Raises
    ------
    FedstageError
        If the name is no kind's.
    """
    if not re.fullmatch(PATTERN, kind):
        raise FedstageError(f"members = {kind!r}: use aggregated, clients, gaussian_M, dirichlet_M")
    if kind in ("aggregated", "clients"):
        return None
    distribution, samples, *rest = kind.split("_", 2)
    settings: dict[str, Any] = {"distribution": distribution, "samples": int(samples)}
    if rest and distribution == "gaussian":
        settings["variant"] = rest[0]
    elif rest:
        settings["concentration"] = float(rest[0])
    return validate(Bayesian, {"name": "bayesian", **settings}, f"members = {kind!r}")
