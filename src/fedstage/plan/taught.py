"""When which global model is taught: distilled, given a head, or trained on features."""

from functools import cache

from fedstage.plan.staleness import first_active, is_idle
from fedstage.settings.exchange import exchanges_features, students
from fedstage.settings.groups import client_groups
from fedstage.settings.lines import Line


@cache
def first_distillation(config: Line) -> int:
    """Return the first round that ends in a distillation; 0 if there is none."""
    trainer = config.global_trainer
    return first_active(config, trainer.warm_up + 1) if trainer else 0


def is_distilled(config: Line, round: int, group: int) -> bool:
    """Whether the group is a student of this round; nobody is where all participants stay away."""
    if group not in students(config) or is_idle(config, round):
        return False
    return 0 < first_distillation(config) <= round


def takes_head(config: Line, group: int) -> bool:
    """Whether the group's model takes the head of the server's in every round."""
    return config.head_transfer and group in client_groups(config)


def takes_features(config: Line, group: int) -> bool:
    """Whether the group's model is the server's, and learns from clients' features every round."""
    return exchanges_features(config) and group not in client_groups(config)


def was_taught(config: Line, round: int, group: int) -> bool:
    """Whether anything taught the group in some round up to this one, so that it is in w*_{t,k}."""
    if takes_head(config, group) or takes_features(config, group):
        return round > 0
    return group in students(config) and 0 < first_distillation(config) <= round
