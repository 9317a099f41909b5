"""Participants of a round: which of them train a group, and which clients they may be."""

from fedstage.settings.base import ClientCount, Positive, Seed, Settings
from fedstage.settings.staleness import Delays


class PlanSettings(Settings):
    """The part of a run's settings that determines the participants of each round.

    `groups` is the number of groups if each client draws its group once, before training.
    """

    clients: ClientCount
    participants: ClientCount
    participation: str
    groups: Positive | None = None
    delays: Delays | None = None
    seed: Seed
