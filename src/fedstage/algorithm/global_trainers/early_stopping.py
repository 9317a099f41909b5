"""Early stopping of a student on the server's validation set, as in FedDF.

As in FedDF's released code, the weights that the student starts from are not a candidate.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from fedstage.data.bags import Samples
from fedstage.models.loading import state_of
from fedstage.settings.numerics import Numerics
from fedstage.settings.server import EarlyStopping
from fedstage.training.loop import AfterStep
from fedstage.training.passes import PLAIN, compute_logits
from fedstage.weights import Weights


@dataclass
class Best:
    """The best weights so far, on the CPU, their step, and how many images they get right."""

    right: int = -1
    step: int = 0
    weights: Weights = field(default_factory=dict)


def early_stopping(
    model: nn.Module,
    settings: EarlyStopping,
    steps: int,
    validation: tuple[Samples, torch.Tensor],
    info: Mapping[str, Any],
    numerics: Numerics = PLAIN,
) -> tuple[AfterStep, Best]:
    """Return the function to call after each step, and the best weights that it has found.

    The function ends the training `patience` steps after the best; a tie is no improvement. Step
    `steps`, the last possible one, is always evaluated. `validation` holds images and labels [n].
    """
    images, labels = validation
    best = Best()

    def after_step(step: int) -> bool:
        if step % settings.every and step < steps:
            return False
        logits = compute_logits(model, images, info, numerics)
        right = int((logits.argmax(1) == labels.cpu()).sum())
        model.train()
        if right > best.right:
            best.right, best.step, best.weights = right, step, state_of(model)
        return step - best.step >= settings.patience

    return after_step, best
