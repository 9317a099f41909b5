"""Selections: which clients' models a one-shot ensemble has (Guha et al. 2019).

A selection is a module with the function `choose`, found by its settings. It depends on trained
models, so the choice is made in the aggregator's job. Of equals, the first clients are taken.

    random     in one random order of all clients, by the seed. A larger k therefore only adds
               members, and a forgotten client is replaced by one other client
    best       by accuracy on their own held-out samples ("CV selection"). Guha et al. measure the
               area under the ROC curve for two classes, and do not specify the baseline above which
               a client reports; here there is none. Clients without such samples are never chosen
    largest    by training samples ("data selection"), of which a client must have at least one
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast

import torch

from fedstage.algorithm.one_shot.aggregator_training import Samples
from fedstage.algorithm.one_shot.client_models import of_classes
from fedstage.errors import FedstageError
from fedstage.protocol.one_shot import members
from fedstage.randomness import torch_generator
from fedstage.settings.aggregators import BestMembers, Members, RandomMembers
from fedstage.settings.base import implementation
from fedstage.settings.one_shot import OneShotRecipe

Counts = Mapping[int, Mapping[int, int]]


@dataclass(frozen=True)
class Candidates:
    """Clients that may be chosen, and what they report.

    `samples` is each client's number of training samples. `accuracies`, from 0 to 1, are measured
    for each client's model on its own validation samples; clients without such samples have none.
    """

    clients: list[int]
    samples: Mapping[int, int]
    accuracies: Mapping[int, float]


class SelectionModule(Protocol):
    """The function of a selection's module."""

    def choose(
        self, settings: Any, candidates: Candidates, generator: torch.Generator
    ) -> list[int]:
        """Return at most `settings.count` clients, in any order."""


def chosen_members(
    recipe: OneShotRecipe,
    counts: Counts,
    validation: Mapping[int, Samples],
    info: Mapping[str, Any],
) -> list[int]:
    """Return the clients that a selection takes into the ensemble, in ascending order.

    Parameters
    ----------
    counts
        By client, how many samples of each class it has trained on.
    validation
        By client, its own validation samples, with the logits of all clients' models.

    Raises
    ------
    FedstageError
        If no client meets the selection's requirements.
    """
    assert recipe.members is not None, "the caller looks"
    everyone = members(recipe)
    module = cast(SelectionModule, implementation(recipe.members))
    sizes, accuracies = _sizes(everyone, counts), _accuracies(everyone, validation, info)
    known = Candidates(everyone, sizes, accuracies)
    generator = torch_generator(recipe.seed, "aggregator", "members")
    if not (chosen := sorted(module.choose(recipe.members, known, generator))):
        demands = recipe.members.model_dump(exclude={"name", "count"})
        raise FedstageError(
            f"members = {recipe.members.name}: no client has {demands}; demand less"
        )
    return chosen


def _sizes(clients: list[int], counts: Counts) -> dict[int, int]:
    return {client: sum(counts.get(client, {}).values()) for client in clients}


def _accuracies(
    clients: list[int], validation: Mapping[int, Samples], info: Mapping[str, Any]
) -> dict[int, float]:
    """Return the accuracy of each client's model on the client's own samples."""
    accuracies = {}
    for client, own in validation.items():
        logits = of_classes(own.logits[clients.index(client)], info)
        accuracies[client] = float((logits.argmax(1) == own.labels).double().mean())
    return accuracies


def choose(settings: Members, candidates: Candidates, generator: torch.Generator) -> list[int]:
    """Return k = `count` clients, or fewer, in the order of the selection."""
    if isinstance(settings, RandomMembers):
        order = torch.rand(max(candidates.clients) + 1, dtype=torch.float64, generator=generator)
        return sorted(candidates.clients, key=lambda client: float(order[client]))[: settings.count]
    ranks = candidates.accuracies if isinstance(settings, BestMembers) else candidates.samples
    reporting = [client for client in sorted(ranks) if ranks[client] or settings.judged]
    return sorted(reporting, key=lambda client: -ranks[client])[: settings.count]
