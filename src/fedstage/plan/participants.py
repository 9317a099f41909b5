"""Participants: what a plan of them is drawn by, and which of them train in one job."""

from fedstage.settings.equivalences import simplest
from fedstage.settings.exchange import is_stale
from fedstage.settings.groups import client_groups, group_participants
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
