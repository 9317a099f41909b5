"""Teaching a student on public images, with the settings of a server."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from fedstage.algorithm.global_trainers.early_stopping import early_stopping
from fedstage.algorithm.global_trainers.swa import take, weight_average
from fedstage.data.bags import Samples
from fedstage.data.samples import read_labelled, state_of
from fedstage.errors import FedstageError
from fedstage.randomness import Key, torch_generator
from fedstage.settings.numerics import Numerics
from fedstage.settings.optimisation import Server
from fedstage.storage.tensors import Weights
from fedstage.training.batches import public_batches
from fedstage.training.loop import train
from fedstage.training.passes import Loss


def teach(
    model: nn.Module,
    images: Samples,
    targets: torch.Tensor,
    loss: Loss,
    server: Server,
    numerics: Numerics,
    about: Mapping[str, Any],
    key: tuple[Key, ...],
    who: str,
    server_validation: Path | None = None,
) -> tuple[Weights, dict[str, Any]]:
    """Train a student; return its weights, and notes of how it learnt.

    Parameters
    ----------
    images : Samples
        n of them, such as uint8 [n, C, H, W], on the model's device.
    targets : torch.Tensor
        [n, ...]: what is to be learnt of each image.
    key : tuple
        Of the generators.
    who : str
        Names the student in messages.
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
        held = read_labelled(server_validation, None, images.device)
        after_step, best = early_stopping(
            model, server.early_stopping, server.steps, held, about, numerics
        )
    outcome = train(
        model,
        images,
        targets,
        public_batches(
            len(images), server.batch_size, server.steps, torch_generator(*key, "batches")
        ),
        server,
        loss,
        about,
        torch_generator(*key, "augmentation"),
        numerics,
        after_step=after_step,
    )
    if outcome.diverged_at is not None:
        raise FedstageError(
            f"{who}: the loss is not finite at step {outcome.diverged_at}; lower "
            f"server.learning_rate = {server.learning_rate}"
        )
    if averages is not None:
        take(model, averages, images, about, numerics)
    learnt: dict[str, Any] = {"loss": outcome.loss}
    if best is not None:
        return best.weights, learnt | {"steps": outcome.steps, "best_step": best.step}
    return state_of(model), learnt
