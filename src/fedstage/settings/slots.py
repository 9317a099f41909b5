"""Slots of a round: which of them train a group, and whether there are clients for all of them."""

from collections.abc import Mapping
from typing import Any


def slots_of(participants: int, groups: int, remainder: str, group: int) -> range:
    """Return the slots of a round that train a group: equal shares and, by setting, a remainder.

    Of 8 participants three groups have 3, 3 and 2 (``spread``), or 4, 2 and 2 (``main``).
    """
    share, rest = divmod(participants, groups)
    if remainder == "main":
        before, own = rest * (group > 0), rest * (group == 0)
    else:
        before, own = min(group, rest), group < rest
    start = group * share + before
    return range(start, start + share + own)


def unbound_needed(slots: Mapping[Any, int], bound: Mapping[Any, int]) -> int:
    """Return how many clients without an architecture of their own every round needs.

    An architecture's slots that outnumber the clients bound to it need others, each another one.

    Parameters
    ----------
    slots, bound : mapping
        The slots of a round, and the clients, of each architecture.
    """
    return sum(max(0, wanted - bound.get(name, 0)) for name, wanted in slots.items())
