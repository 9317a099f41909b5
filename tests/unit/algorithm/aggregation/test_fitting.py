"""What a plugin's rule and server optimiser may return: refused by their names and file."""

import pytest
import torch
from tests.shared.plugins import loaded

from fedstage.algorithm.aggregation.rules import combined
from fedstage.algorithm.aggregation.server_optimizers import server_step
from fedstage.errors import FedstageError

PLUGIN = """
from typing import Literal

import torch

from fedstage.settings.aggregation import ServerStep
from fedstage.settings.aggregation import ModelRule


class Trimmed(ModelRule):
    name: Literal["trimmed"]


class Moved(ServerStep):
    name: Literal["moved"]


def combine(settings, models, shares, start):
    model = dict(models[0])
    return CHANGED


def step(settings, weights, change, state):
    model = dict(weights)
    return CHANGED, {}
"""
LIKE = {"w": torch.ones(2), "count": torch.tensor(3)}


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ("{'w': model['w']}", "no 'count': must return all tensors of the model"),
        ("model | {'v': model['w']}", "'v': must return only tensors of the model"),
        ("model | {'w': torch.ones(3)}", "'w' of float32 [3]: must be of float32 [2]"),
        ("model | {'count': torch.tensor(1.5)}", "'count' of float32 []: must be of int64 []"),
        ("model | {'w': model['w'] / 0}", "'w' that is not finite"),
        ("model | {'w': 1.0}", "'w' of type float: must be of float32 [2]"),
        ("[model['w']]", "list: must be tensors by name"),
    ],
)
def test_tensors_of_other_names_shapes_or_types_are_refused(tmp_path, monkeypatch, changed, fault):
    monkeypatch.chdir(tmp_path)
    with loaded("mine/trimmed.py", PLUGIN.replace("CHANGED", changed)) as kinds:
        with pytest.raises(FedstageError) as caught:
            combined(kinds["trimmed"](name="trimmed"), [LIKE] * 3, [1 / 3] * 3, LIKE)
        assert str(caught.value) == f"mine/trimmed.py: trimmed: combine returns {fault}"
        with pytest.raises(FedstageError) as caught:
            server_step(kinds["moved"](name="moved"), LIKE, LIKE, {})
        assert str(caught.value) == f"mine/trimmed.py: moved: step returns {fault}"
