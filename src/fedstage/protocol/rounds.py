"""What happens in which round: participants, their staleness, and when models are taught.

Rounds are numbered from 1. Blocks of them have a common file of participants.
"""

from __future__ import annotations

from functools import cache
from itertools import accumulate, count
from typing import TYPE_CHECKING, Any

from fedstage.protocol.exchange import exchanges_features
from fedstage.protocol.groups import client_groups
from fedstage.protocol.teaching import students
from fedstage.randomness import fraction

if TYPE_CHECKING:
    from fedstage.settings.groups import Staleness
    from fedstage.settings.recipes import Recipe

#: Rounds with a common file of participants.
BLOCK = 100


def block_of(round_: int) -> tuple[int, int]:
    """Return the first and last round of the fixed block that contains `round_`.

    The blocks (1-100, 101-200, ...) do not depend on the length of a run, so extending a run leaves
    the files of earlier rounds unchanged.
    """
    if round_ < 1:
        raise ValueError(f"round = {round_}: at least 1")
    first = (round_ - 1) // BLOCK * BLOCK + 1
    return first, first + BLOCK - 1


def evaluated_rounds(rounds: int, every: int) -> list[int]:
    """Return the rounds that are evaluated: each `every`-th, and the last."""
    return sorted({*range(every, rounds + 1, every), rounds})


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
    if staleness.name == "cyclic":
        return staleness.delays[(round_ - 1) % len(staleness.delays)]
    if staleness.name != "random":
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
    if staleness.name == "cyclic":
        return 0 in staleness.delays
    if staleness.name == "random":
        return staleness.probabilities[0] > 0
    return staleness.name == "none"


@cache
def first_distillation(recipe: Recipe) -> int:
    """Return the first round that ends in a distillation; 0 if there is none."""
    trainer = recipe.global_trainer
    return first_active(recipe, trainer.warm_up + 1) if trainer else 0


def is_distilled(recipe: Recipe, round_: int, group: int) -> bool:
    """Whether the group is a student of this round; no group is if all participants are absent."""
    if group not in students(recipe) or is_idle(recipe, round_):
        return False
    return 0 < first_distillation(recipe) <= round_


def takes_head(recipe: Recipe, group: int) -> bool:
    """Whether the group's model takes the head of the server's in every round."""
    return recipe.head_sharing and group in client_groups(recipe)


def takes_features(recipe: Recipe, group: int) -> bool:
    """Whether the group's model is the server's, and learns from clients' features every round."""
    return exchanges_features(recipe) and group not in client_groups(recipe)


def was_taught(recipe: Recipe, round_: int, group: int) -> bool:
    """Whether anything taught the group in some round up to this one, so that it is in w*_{t,k}."""
    if takes_head(recipe, group) or takes_features(recipe, group):
        return round_ > 0
    return group in students(recipe) and 0 < first_distillation(recipe) <= round_


def checkpoints(ensemble: Any) -> int:
    """Return R, the number of rounds whose models an ensemble has."""
    found: int = getattr(ensemble, "checkpoints", 1)
    return found


def member_rounds(round_: int, ensemble: Any) -> range:
    """Return the rounds of an ensemble's members after `round_`, fewer in the first rounds."""
    return range(max(1, round_ - checkpoints(ensemble) + 1), round_ + 1)
