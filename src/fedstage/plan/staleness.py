"""Staleness: the round whose global model a participant starts from, and who stays away.

The graph depends on it, so that it needs nothing but settings.
"""

from itertools import accumulate, count

from fedstage.randomness import fraction
from fedstage.settings.lines import Line
from fedstage.settings.staleness import Cyclic, Random, Staleness


def base_round(line: Line, round: int, slot: int) -> int:
    """Return b: the participant in a slot of round t starts from w*_{b,k}, in step t - 1.

    Where groups are drawn, a participant has the delay that it would have without groups.
    """
    return base_of(line.staleness, line.seed, round, slot % line.participants)


def base_of(staleness: Staleness, seed: int, round: int, slot: int) -> int:
    """Return `base_round`; the slot is one of a round's participants."""
    if staleness.name == "never":
        return 0
    return max(0, round - 1 - _delay(staleness, seed, round, slot))


def _delay(staleness: Staleness, seed: int, round: int, slot: int) -> int:
    if isinstance(staleness, Cyclic):
        return staleness.delays[(round - 1) % len(staleness.delays)]
    if not isinstance(staleness, Random):
        return 0
    drawn = fraction(seed, "staleness", round, slot)
    ends = list(accumulate(staleness.probabilities))
    last = max(d for d, share in enumerate(staleness.probabilities) if share)
    return next((d for d, end in enumerate(ends) if drawn < end), last)


def is_withdrawn(line: Line, round: int, slot: int) -> bool:
    """Whether nobody is in a slot, because it would be stale."""
    return line.withdraw_stale and base_round(line, round, slot) < round - 1


def is_idle(line: Line, round: int) -> bool:
    """Whether all slots of a round are withdrawn: nobody trains, and nothing is distilled."""
    return line.withdraw_stale and all(
        is_withdrawn(line, round, slot) for slot in range(line.participants)
    )


def first_active(line: Line, first: int) -> int:
    """Return the first round from `first` on that is not idle; 0 if there is none."""
    if not line.withdraw_stale or first == 1:
        return first
    if not _may_be_in_step(line.staleness):
        return 0
    return next(round for round in count(first) if not is_idle(line, round))


def _may_be_in_step(staleness: Staleness) -> bool:
    """Whether a delay may be 0 in rounds after the first."""
    if isinstance(staleness, Cyclic):
        return 0 in staleness.delays
    if isinstance(staleness, Random):
        return staleness.probabilities[0] > 0
    return staleness.name == "none"
