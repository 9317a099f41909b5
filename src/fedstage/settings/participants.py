"""Participants of a round: which of them train a group, and which clients they may be."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from fedstage.settings.base import ClientCount, Count, Positive, Seed, Settings
from fedstage.settings.staleness import Delays


class Binding(Settings):
    """Which clients the participants of a round may be.

    Architectures are numbered by their first group. Recipes with other models, or with more groups
    per architecture, therefore have the same participants.
    """

    participants: Annotated[tuple[Count, ...], Field(strict=False, min_length=1)]
    """Architecture of each participant of a round."""
    clients: Annotated[tuple[Count | None, ...], Field(strict=False, min_length=1)]
    """Architecture of each client; None means any."""


class PlanSettings(Settings):
    """The part of a run's settings that determines the participants of each round.

    `binding` restricts which clients each participant may be; by default any. `groups` is the
    number of groups if each client draws its group once, before training.
    """

    clients: ClientCount
    participants: ClientCount
    participation: str
    binding: Binding | None = None
    groups: Positive | None = None
    delays: Delays | None = None
    seed: Seed


def shares_of(participants: int, groups: int, remainder: str, group: int) -> range:
    """Return the participants of a round that train a group: equal shares, plus a remainder.

    With 8 participants, three groups have 3, 3 and 2 of them (``spread``), or 4, 2 and 2
    (``main``).
    """
    share, rest = divmod(participants, groups)
    if remainder == "main":
        before, own = rest * (group > 0), rest * (group == 0)
    else:
        before, own = min(group, rest), group < rest
    start = group * share + before
    return range(start, start + share + own)


def unbound_needed(participants: Mapping[Any, int], bound: Mapping[Any, int]) -> int:
    """Return how many unbound clients every round needs.

    Each participant of an architecture beyond the clients bound to it needs another unbound client.

    Parameters
    ----------
    participants, bound : mapping
        Numbers of participants per round, and of bound clients, for each architecture.
    """
    return sum(max(0, count - bound.get(name, 0)) for name, count in participants.items())
