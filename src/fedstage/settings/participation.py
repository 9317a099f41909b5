"""Settings that decide which clients take part in which round."""

from fedstage.settings.base import Positive, Seed, Settings
from fedstage.settings.participants import Binding
from fedstage.settings.staleness import Delays


class PlanSettings(Settings):
    """The part of a run's settings by which participants are drawn, or come in turn.

    `binding` has the clients that each participant may have, by default all; `groups` is how many
    there are if each client is drawn one before training.
    """

    clients: Positive
    participants: Positive
    participation: str
    binding: Binding | None = None
    groups: Positive | None = None
    delays: Delays | None = None
    seed: Seed
