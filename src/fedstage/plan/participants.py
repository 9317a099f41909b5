"""Participants: what a plan of them is drawn by, and which of them train in one job."""

from functools import cache

from fedstage.settings.equivalences import simplest
from fedstage.settings.exchange import is_stale
from fedstage.settings.groups import client_groups, group_slots, model_of
from fedstage.settings.lines import Line
from fedstage.settings.models import Model
from fedstage.settings.slots import Binding
from fedstage.settings.staleness import Delays


def cohorts(line: Line, group: int, size: int | None) -> list[tuple[int, ...]]:
    """Cut the slots of a group into cohorts of at most `size`; None: all of them in one.

    Participants that may be stale start from models of their own, so each trains in its own job.
    """
    slots = tuple(group_slots(line, group))
    step = 1 if is_stale(line) else size or len(slots)
    return [slots[start : start + step] for start in range(0, len(slots), step)]


def groups_drawn(line: Line) -> int | None:
    """Return how many groups there are of which each client is drawn one, if so."""
    settings = simplest(line)
    return len(client_groups(settings)) if settings.client_groups == "drawn" else None


def delays(line: Line) -> Delays | None:
    """Return how participants are late, if any are."""
    settings = simplest(line)
    if settings.staleness.name == "none":
        return None
    # Jobs ask for it, so that what reads settings, and counts nowhere, must not run.
    return Delays.model_construct(
        staleness=settings.staleness, withdraw_stale=settings.withdraw_stale
    )


@cache
def binding(line: Line) -> Binding | None:
    """Return which clients may be which slot of a round; None if each may be any."""
    parts = simplest(line).client_architectures
    if not parts:
        return None
    groups = client_groups(line)
    trained = dict.fromkeys(model_of(line, group) for group in groups)
    numbers: dict[Model | None, int | None] = {None: None}
    numbers |= {model: number for number, model in enumerate(trained)}
    slots = [numbers[model_of(line, k)] for k in groups for _ in group_slots(line, k)]
    bound = [numbers[part.model] for part in parts for _ in range(part.clients)]
    unbound = [None] * (line.clients - len(bound))
    return Binding.model_validate({"slots": slots, "clients": bound + unbound})
