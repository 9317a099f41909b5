"""What the stage `initial_model` depends on."""

from fedstage.settings.base import Settings
from fedstage.settings.models import Model


class InitialModel(Settings):
    """All that determines the initial weights of a global model, but its group and the data."""

    model: Model
    seed: int
