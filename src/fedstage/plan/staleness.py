"""Staleness: the round whose global model a participant starts from, and absent participants.

The graph depends on this module, so it needs nothing but settings.
"""

from itertools import accumulate, count

from fedstage.randomness import fraction
from fedstage.settings.recipes import Recipe
from fedstage.settings.staleness import Cyclic, Random, Staleness


def base_round(recipe: Recipe, round_: int, participant: int) -> int:
    """Return b: the participant of round t starts from w*_{b,k}, with b = t - 1 if it is in step.

    Where groups are drawn, a participant has the delay that it would have without groups.
    """
    return base_of(recipe.staleness, recipe.seed, round_, participant % recipe.participants)


def base_of(staleness: Staleness, seed: int, round_: int, participant: int) -> int:
    """Return `base_round` of a participant i = 0, ..., R - 1."""
    if staleness.name == "never":
        return 0
    return max(0, round_ - 1 - _delay(staleness, seed, round_, participant))


def _delay(staleness: Staleness, seed: int, round_: int, participant: int) -> int:
    if isinstance(staleness, Cyclic):
        return staleness.delays[(round_ - 1) % len(staleness.delays)]
    if not isinstance(staleness, Random):
        return 0
    drawn = fraction(seed, "staleness", round_, participant)
    ends = list(accumulate(staleness.probabilities))
    last = max(d for d, share in enumerate(staleness.probabilities) if share)
    return next((d for d, end in enumerate(ends) if drawn < end), last)


def is_withdrawn(recipe: Recipe, round_: int, participant: int) -> bool:
    """Whether a participant is absent because it would be stale."""
    return recipe.withdraw_stale and base_round(recipe, round_, participant) < round_ - 1


def is_idle(recipe: Recipe, round_: int) -> bool:
    """Whether all participants of a round are withdrawn: nothing is trained or distilled."""
    return recipe.withdraw_stale and all(
        is_withdrawn(recipe, round_, participant) for participant in range(recipe.participants)
    )


def first_active(recipe: Recipe, first: int) -> int:
    """Return the first round from `first` on that is not idle; 0 if there is none."""
    if not recipe.withdraw_stale or first == 1:
        return first
    if not _may_be_in_step(recipe.staleness):
        return 0
    return next(round_ for round_ in count(first) if not is_idle(recipe, round_))


def _may_be_in_step(staleness: Staleness) -> bool:
    """Whether a delay may be 0 in rounds after the first."""
    if isinstance(staleness, Cyclic):
        return 0 in staleness.delays
    if isinstance(staleness, Random):
        return staleness.probabilities[0] > 0
    return staleness.name == "none"
