"""What the stage `initial_model` depends on."""

from fedstage.config import Model, Settings


class InitialModel(Settings):
    """All that determines the initial weights of a global model, but its group and the data."""

    model: Model
    seed: int
