"""A student learns targets on public images, with the settings of a server."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from fedstage.algorithm.global_trainers.early_stopping import early_stopping
from fedstage.algorithm.global_trainers.swa import take, weight_average
from fedstage.data.bags import Samples
from fedstage.data.samples import read_labelled
from fedstage.errors import FedstageError
from fedstage.models.loading import state_of
from fedstage.randomness import Key, torch_generator
from fedstage.settings.numerics import Numerics
from fedstage.settings.optimisation import Server
from fedstage.training.batches import public_batches
from fedstage.training.loop import train
from fedstage.training.passes import Loss
from fedstage.weights import Weights


def teach(
    model: nn.Module,
    images: Samples,
    targets: torch.Tensor,
    loss: Loss,
    server: Server,
    numerics: Numerics,
    info: Mapping[str, Any],
    key: tuple[Key, ...],
    name: str,
    server_validation: Path | None = None,
) -> tuple[Weights, dict[str, Any]]:
    """Train a student; return its weights, and metadata of its training.

    Parameters
    ----------
    images, targets
        Such as uint8 [n, C, H, W], on the model's device, and [n, ...] for the loss.
    key : tuple
        Of the generators.
    name : str
        The student in messages.
    server_validation : Path, optional
        The server's own labelled images, where training may stop early.

    Raises
    ------
    FedstageError
        If the student diverges.
    """
    after_step, averages, best = None, None, None
    if server.swa is not None:
        after_step, averages = weight_average(model, server.swa)
    if server.early_stopping is not None:
        assert server_validation is not None, "the graph gives it to such a line"
        validation = read_labelled(server_validation, None, images.device)
        after_step, best = early_stopping(
            model, server.early_stopping, server.steps, validation, info, numerics
        )
    generator = torch_generator(*key, "batches")
    outcome = train(
        model,
        images,
        targets,
        public_batches(len(images), server.batch_size, server.steps, generator),
        server,
        loss,
        info,
        torch_generator(*key, "augmentation"),
        numerics,
        after_step=after_step,
    )
    if outcome.diverged_at is not None:
        raise FedstageError(
            f"{name}: the loss is not finite at step {outcome.diverged_at}; lower "
            f"server.learning_rate = {server.learning_rate}"
        )
    if averages is not None:
        take(model, averages, images, info, numerics)
    if best is not None:
        stopped = {"steps": outcome.steps, "best_step": best.step}
        return best.weights, {"loss": outcome.loss} | stopped
    return state_of(model), {"loss": outcome.loss}
