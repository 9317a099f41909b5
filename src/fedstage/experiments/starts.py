"""Runs that start from the final model of another method.

This chains methods: federated rounds start from a student that clients have taught in one shot
(FENS, Table 7: FedKD and then FedAvg), or the other way round. The method that `start` names, at
the same point of the grid, is replaced by a file of weights, whose name identifies everything that
determines it.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from fedstage.errors import FedstageError
from fedstage.plan import one_shot, unfederated
from fedstage.plan.data_files import AnyRecipe
from fedstage.plan.runs import Run
from fedstage.plan.training import global_model
from fedstage.protocol.groups import models_of
from fedstage.protocol.one_shot import client_model, trained_on
from fedstage.settings.merging import Raw
from fedstage.settings.models import Model
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.recipes import LocalRecipe, Recipe

#: The key that names another method, whose settings at the same point a method starts from.
LIKE = "like"

_FORM = "must be the name of a method, or {method: NAME, KEY: VALUE} with changes of its settings"
#: Settings in which a recipe and its start must agree.
_SHARED = ("data", "clients", "partition", "validation", "core", "seed")


def named_start(where: str, start: Any) -> tuple[str, Raw]:
    """Return the method that a run starts from, and changes of its settings."""
    changes = {"method": start} if isinstance(start, str) else start
    if not isinstance(changes, Mapping) or not isinstance(changes.get("method"), str):
        raise FedstageError(f"{where}: start = {start!r}: {_FORM}")
    return changes["method"], {key: value for key, value in changes.items() if key != "method"}


def ended_in(where: str, recipe: AnyRecipe, rounds: int) -> str:
    """Return the final model of a recipe: the main model after its last round, or a student.

    Raises
    ------
    FedstageError
        If the recipe ends in several models.
    """
    if isinstance(recipe, Recipe):
        return global_model(recipe, rounds, 0)
    if isinstance(recipe, OneShotRecipe) and recipe.distillation is not None:
        return one_shot.student_file(recipe)
    if isinstance(recipe, LocalRecipe) and recipe.on_core:
        return unfederated.local_models(recipe)[0]
    kind = (
        "one_shot without distillation" if isinstance(recipe, OneShotRecipe) else "alone or pooled"
    )
    raise FedstageError(
        f"{where}: training = {kind}: must be federated, core, or one_shot with distillation, to "
        "end in one model"
    )


def check_start(where: str, recipe: AnyRecipe, before: AnyRecipe) -> None:
    """Refuse a recipe that cannot start from another.

    Raises
    ------
    FedstageError
        If their clients, data or architectures differ, or each client has its own start.
    """
    for key in _SHARED:
        if getattr(recipe, key) != getattr(before, key):
            other, own = (getattr(part, key) for part in (before, recipe))
            raise FedstageError(
                f"{where}: start: {key} = {getattr(other, 'name', other)!r}: must be that of the "
                f"run, {getattr(own, 'name', own)!r}"
            )
    student = before.student if isinstance(before, OneShotRecipe) else None
    final = student or before.model
    for model in _architectures(recipe):
        if model != final:
            raise FedstageError(
                f"{where}: start: ends in model = {final.name!r}: must be the run's, "
                f"{model.name!r}, settings included"
            )
    if getattr(recipe, "initialisation", "common") != "common":
        raise FedstageError(
            f"{where}: initialisation = 'own': must be 'common' with start, which all clients share"
        )


def check_parts(where: str, parts: Sequence[Run], methods: Mapping[str, Raw]) -> None:
    """Refuse methods that go on in rounds from one shot, or the other way round, with its settings.

    An experiment's base trains clients for one of these, to the end or for a round. So a method
    with a `start` of the other kind must be `like` the same method without the start.

    Parameters
    ----------
    parts : sequence of Run
        Runs that start from one another, each with its method among its axes.

    Raises
    ------
    FedstageError
        If such a method has no `like`.
    """
    for before, part in pairwise(parts):
        method = str(part.axes["method"])
        own, other = part.length.training, before.length.training
        chained = "start" in methods[method] and LIKE not in methods[method]
        if chained and own != other and "one_shot" in (own, other):
            raise FedstageError(
                f"{where}, method {method}: {LIKE}: missing; a run with training = {own} that "
                f"starts from one with {other} must name the method whose settings it has"
            )


def _architectures(recipe: AnyRecipe) -> tuple[Model, ...]:
    """Return the architectures of all models that are trained from the start."""
    if isinstance(recipe, Recipe):
        return models_of(recipe) if recipe.start_of == "all" else (recipe.model,)
    if isinstance(recipe, LocalRecipe) and trained_on(recipe):
        return (recipe.model,)
    return tuple(client_model(recipe, client) for client in range(recipe.clients))
