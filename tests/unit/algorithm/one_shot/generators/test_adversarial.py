"""DENSE and Co-Boosting: what stays as it is; `test_generators.py` has whole runs."""

import pytest
import torch
from torch import nn

from fedstage.algorithm.one_shot.generators import of_server
from fedstage.algorithm.one_shot.generators.adversarial import synthesise
from fedstage.algorithm.one_shot.generators.world import World
from fedstage.settings.generators import CoBoosting, Dense
from fedstage.settings.numerics import Numerics
from fedstage.settings.server import Server

INFO = {"shape": [1, 8, 8], "classes": 3, "mean": [0.3], "std": [0.2]}
SMALL = {"latent": 4, "width": 2, "steps": 3, "batch_size": 6, "learning_rate": 0.01}
SERVER = Server(
    epochs=3, batch_size=4, learning_rate=0.05, momentum=0.9, temperature=2.0,
    schedule={"name": "cosine"},
)  # fmt: skip
KEY = (5, "a")
DENSE = Dense(name="dense", adversarial=0.5, **SMALL)
BOOSTING = CoBoosting(name="coboosting", clip_norm=0.01, temperature=3.0, **SMALL)


def network(seed):
    torch.manual_seed(seed)
    layers = nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(), nn.Linear(108, 3)
    model = nn.Sequential(*layers)
    with torch.no_grad():
        model(torch.randn(20, 1, 8, 8))  # running statistics
    return model


def run(settings, server=SERVER, models=2):
    student = network(9)
    world = World([network(seed) for seed in range(models)], student, INFO, Numerics(device="cpu"))
    made = synthesise(settings, of_server(settings, INFO), world, server, KEY)
    return made, student.state_dict(), world


@pytest.mark.parametrize("settings", [DENSE, BOOSTING], ids=lambda one: one.name)
def test_clients_models_stay_as_they_are(settings):
    _, _, world = run(settings)
    for seed, teacher in enumerate(world.teachers):
        expected = network(seed).state_dict()
        assert all(
            torch.equal(value, expected[name]) for name, value in teacher.state_dict().items()
        )


def test_weights_stay_between_0_and_1():
    wild = BOOSTING.model_copy(update={"weight_step": 0.9})
    weights = run(wild)[0].weights
    assert ((weights >= 0) & (weights <= 1)).all()
