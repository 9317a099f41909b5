"""Early stopping of a student on the server's validation set, as FedDF distils.

As in FedDF's released code the weights that the student starts from are no candidate.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from fedstage.data.bags import Samples
from fedstage.data.samples import state_of
from fedstage.settings.numerics import Numerics
from fedstage.settings.optimisation import EarlyStopping
from fedstage.storage.tensors import Weights
from fedstage.training.inference import compute_logits
from fedstage.training.loop import AfterStep
from fedstage.training.passes import PLAIN


@dataclass
class Best:
    """The best weights so far, after which step, and how many images they get right."""

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
    """Return what to call after each step, and the best that it has found.

    Parameters
    ----------
    steps : int
        How many there are at most: the last is measured in any case.
    validation : tuple of Samples and torch.Tensor
        Images uint8 [n, C, H, W] and labels [n].

    Returns
    -------
    after_step : AfterStep
        Ends the training `patience` steps after the best. A tie is no improvement.
    best : Best
        Weights on the CPU.
    """
    images, labels = validation
    best = Best()

    def after_step(step: int) -> bool:
        if step % settings.every and step < steps:
            return False
        said = compute_logits(model, images, info, numerics)
        right = int((said.argmax(1) == labels.cpu()).sum())
        model.train()
        if right > best.right:
            best.right, best.step, best.weights = right, step, state_of(model)
        return step - best.step >= settings.patience

    return after_step, best
