"""Losses of global models on the server's validation set, as weights of votes (FedGKD-VOTE)."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from fedstage.data.samples import read_labelled
from fedstage.settings.numerics import Numerics
from fedstage.training.passes import compute_logits, cross_entropy


def losses_of(
    models: Iterable[nn.Module],
    validation: Path,
    info: dict[str, Any],
    device: torch.device,
    numerics: Numerics,
) -> list[float]:
    """Return the mean cross entropy of each model on the images of `validation`."""
    images, labels = read_labelled(validation, None, device, info)
    logits = (compute_logits(model, images, info, numerics) for model in models)
    return [cross_entropy(of_model, labels.cpu()) for of_model in logits]
