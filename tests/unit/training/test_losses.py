"""Losses of plugins that are no single number: refused by their name and file."""

import pytest
import torch
from tests.shared.plugins import loaded

from fedstage.errors import FedstageError
from fedstage.training.losses import client_loss

LOSS = """
from functools import partial
from typing import Literal

from torch.nn.functional import cross_entropy

from fedstage.settings.optimisation import LossOfLabels


class Smoothed(LossOfLabels):
    name: Literal["smoothed"]


def loss(settings, classes, device):
    return MADE
"""
LOGITS, LABELS = torch.zeros(8, 3), torch.zeros(8, dtype=torch.int64)


def value(made):
    with loaded("mine/smoothed.py", LOSS.replace("MADE", made)) as kinds:
        settings = kinds["smoothed"](name="smoothed")
        return client_loss(settings, 3, torch.device("cpu"))(LOGITS, LABELS)


@pytest.mark.parametrize(
    ("made", "told"),
    [
        ("partial(cross_entropy, reduction='none')", "[8]"),
        ("lambda logits, labels: cross_entropy(logits, labels)[None]", "[1]"),
        ("lambda logits, labels: cross_entropy(logits, labels).item()", "float"),
    ],
)
def test_a_loss_is_one_number(tmp_path, monkeypatch, made, told):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FedstageError) as caught:
        value(made)
    must = "must be a tensor of one number, the mean"
    assert str(caught.value) == f"mine/smoothed.py: smoothed: the loss of a batch is {told}, {must}"
