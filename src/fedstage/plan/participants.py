"""Participants: what a plan of them is drawn by, and which of them train in one job."""

from functools import cache

from fedstage.settings.equivalences import simplest
from fedstage.settings.exchange import is_stale
from fedstage.settings.groups import client_groups, group_participants, model_of
from fedstage.settings.models import Model
from fedstage.settings.participants import Binding
from fedstage.settings.recipes import Recipe
from fedstage.settings.staleness import Delays


def cohorts(recipe: Recipe, group: int, size: int | None) -> list[tuple[int, ...]]:
    """Cut the participants of a group into cohorts of at most `size`; None: all of them in one.

    Participants that may be stale start from models of their own, so each trains in its own job.
    """
    participants = tuple(group_participants(recipe, group))
    step = 1 if is_stale(recipe) else size or len(participants)
    return [participants[start : start + step] for start in range(0, len(participants), step)]


def groups_drawn(recipe: Recipe) -> int | None:
    """Return the number of groups if the group of each client is drawn, else None."""
    settings = simplest(recipe)
    return len(client_groups(settings)) if settings.client_groups == "drawn" else None


def delays(recipe: Recipe) -> Delays | None:
    """Return how participants are late, if any are."""
    settings = simplest(recipe)
    if settings.staleness.name == "none":
        return None
    # Jobs call this, so it must not run code that reads settings, which never counts.
    return Delays.model_construct(
        staleness=settings.staleness, withdraw_stale=settings.withdraw_stale
    )


@cache
def binding(recipe: Recipe) -> Binding | None:
    """Return which clients may be which participant of a round; None if each may be any."""
    parts = simplest(recipe).client_architectures
    if not parts:
        return None
    groups = client_groups(recipe)
    trained = dict.fromkeys(model_of(recipe, group) for group in groups)
    numbers: dict[Model | None, int | None] = {None: None}
    numbers |= {model: number for number, model in enumerate(trained)}
    participants = [
        numbers[model_of(recipe, k)] for k in groups for _ in group_participants(recipe, k)
    ]
    bound = [numbers[part.model] for part in parts for _ in range(part.clients)]
    unbound = [None] * (recipe.clients - len(bound))
    return Binding.model_validate({"participants": participants, "clients": bound + unbound})
