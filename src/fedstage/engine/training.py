"""The loop that trains: clients, pooled data and distilled students alike."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from fedstage.config import Numerics, Optimiser
from fedstage.engine.bags import Samples
from fedstage.engine.batches import all_batches
from fedstage.engine.devices import on_device
from fedstage.engine.images import augment, normalise
from fedstage.engine.optimisers import gradients_of, optimiser_step
from fedstage.engine.passes import PLAIN, Loss, model_loss
from fedstage.engine.schedules import factor

#: Adds to the gradients of the parameters, in place: what a local trainer does to each step.
GradientTerm = Callable[[Sequence[nn.Parameter]], None]
#: Told the number of steps taken, after each: true ends the training.
AfterStep = Callable[[int], bool]


@dataclass(frozen=True)
class Outcome:
    """What a training did.

    Attributes
    ----------
    steps : int
        Steps taken.
    loss : float
        Mean loss over all steps; NaN where it diverged.
    rate_sum : float
        Sum of the learning rates of all steps, the eta E of SCAFFOLD's option II.
    diverged_at : int or None
        The first step (from 1) with a loss that is not finite, or the last if only the weights are.
    """

    steps: int
    loss: float
    rate_sum: float
    diverged_at: int | None


def train(
    model: nn.Module,
    images: Samples,
    targets: torch.Tensor,
    batches: Sequence[torch.Tensor],
    settings: Optimiser,
    loss: Loss,
    info: Mapping[str, Any],
    generator: torch.Generator,
    numerics: Numerics = PLAIN,
    *,
    rate: float = 1.0,
    gradient_term: GradientTerm | None = None,
    after_step: AfterStep | None = None,
) -> Outcome:
    """Train `model` in place, one step a batch.

    Parameters
    ----------
    images : Samples
        uint8 [n, C, H, W], or samples of another kind, on the model's device.
    targets : torch.Tensor
        Labels [n] or teacher logits [n, classes], on the model's device.
    info : Mapping
        Mean and deviation that images are normalised with.
    generator : torch.Generator
        Of the augmentation.
    numerics : Numerics
        How the loss and its gradient are computed.
    rate : float
        Factor of the learning rate in this round.
    gradient_term : GradientTerm, optional
        Called between the backward pass and the step, after clipping.
    after_step : AfterStep, optional
        Called after each step; may read and evaluate the model.
    """
    model.train()
    parameters = list(model.parameters())
    move = optimiser_step(parameters, settings)
    loss_of = model_loss(loss, numerics, settings.batch_size)
    losses = torch.zeros(len(batches), device=images.device)
    rate_sum = 0.0
    for step, batch in enumerate(batches):
        eta = settings.learning_rate * rate * factor(settings.schedule, step, len(batches))
        index = on_device(batch, images.device)
        pixels = normalise(augment(images[index], settings.augmentation, generator), info)
        value = loss_of(model, pixels, targets[index])
        for parameter in parameters:
            parameter.grad = None
        value.backward()
        if settings.clip_norm is not None:
            nn.utils.clip_grad_norm_(parameters, settings.clip_norm)
        if gradient_term is not None:
            gradient_term(parameters)
        move(eta)
        rate_sum += eta
        losses[step] = value.detach()
        if after_step is not None and after_step(step + 1):
            losses = losses[: step + 1]
            break
    return _outcome(model, losses.cpu(), rate_sum)


def full_gradient(
    model: nn.Module,
    images: Samples,
    targets: torch.Tensor,
    settings: Optimiser,
    loss: Loss,
    info: Mapping[str, Any],
    numerics: Numerics = PLAIN,
) -> list[torch.Tensor]:
    """Return the gradient of the mean loss of all samples, as a step would take it.

    In batches of the training's size, each weighted by its samples, without augmentation. Norms use
    the batch, as in training: the model's running statistics move. `clip_norm` and `weight_decay`
    apply to the whole, as they do to each step's gradient.

    Parameters
    ----------
    images : Samples
        uint8 [n, C, H, W], or samples of another kind, on the model's device.
    targets : torch.Tensor
        Labels [n] or teacher logits [n, classes], on the model's device.
    """
    model.train()
    parameters = list(model.parameters())
    for parameter in parameters:
        parameter.grad = None
    loss_of = model_loss(loss, numerics, settings.batch_size)
    for batch in all_batches(len(images), settings.batch_size):
        index = on_device(batch, images.device)
        value = loss_of(model, normalise(images[index], info), targets[index])
        (value * (len(batch) / len(images))).backward()
    if settings.clip_norm is not None:
        nn.utils.clip_grad_norm_(parameters, settings.clip_norm)
    with torch.no_grad():
        return gradients_of(parameters, settings.weight_decay)


def _outcome(model: nn.Module, losses: torch.Tensor, rate_sum: float) -> Outcome:
    """Look for divergence once, after the last step: no device is waited for in between."""
    steps = len(losses)
    wrong = (~losses.isfinite()).nonzero()
    if len(wrong):
        return Outcome(steps, math.nan, rate_sum, int(wrong[0]) + 1)
    if not all(bool(value.isfinite().all()) for value in model.state_dict().values()):
        return Outcome(steps, math.nan, rate_sum, steps)
    return Outcome(steps, float(losses.mean()) if steps else 0.0, rate_sum, None)
