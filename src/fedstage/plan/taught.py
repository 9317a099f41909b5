"""When each global model is taught: distilled, given a head, or trained on features."""

from functools import cache

from fedstage.plan.staleness import first_active, is_idle
from fedstage.settings.exchange import exchanges_features, students
from fedstage.settings.groups import client_groups
from fedstage.settings.recipes import Recipe


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
