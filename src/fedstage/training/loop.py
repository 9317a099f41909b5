"""The loop that trains: clients, pooled data and distilled students alike."""

import math
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, ParamSpec

import torch
from torch import nn

from fedstage.data.bags import Samples
from fedstage.settings.numerics import Numerics
from fedstage.settings.optimisation import Optimiser
from fedstage.training.batches import all_batches
from fedstage.training.devices import on_device
from fedstage.training.graphs import Step, recorded
from fedstage.training.images import augment, draw, normalise
from fedstage.training.optimisers import gradients_of, optimiser_step, step_sizes
from fedstage.training.passes import PLAIN, Loss, model_loss
from fedstage.training.schedules import factor
from fedstage.training.streams import finish

P = ParamSpec("P")
#: Adds to the gradients of the parameters, in place: what a local trainer does to each step.
GradientTerm = Callable[[Sequence[nn.Parameter]], None]
#: Told the number of steps taken, after each: true ends the training.
AfterStep = Callable[[int], bool]

AHEAD = 100  # batches that go to the device at a time


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


def training(
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
) -> Generator[None, None, Outcome]:
    """Train `model` in place, one step a batch.

    Yields after each step, so that other trainings may take theirs.

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
    _forget_gradients(parameters)
    take = _step(model, images, targets, settings, loss, info, numerics, gradient_term)
    rates = _rates(settings, rate, len(batches))
    sizes = step_sizes(settings, rates, like=parameters[0])
    losses = torch.zeros(len(batches), device=images.device)
    steps, rate_sum = 0, 0.0
    for samples in _drawn(batches, settings.augmentation, generator, images.device):
        losses[steps] = take(samples, sizes[steps])
        rate_sum += rates[steps]
        steps += 1
        if after_step is not None and after_step(steps):
            break
        yield
    return _outcome(model, losses[:steps], rate_sum)


def _without_a_break(
    work: Callable[Concatenate[nn.Module, Samples, P], Generator[None, None, Outcome]],
) -> Callable[Concatenate[nn.Module, Samples, P], Outcome]:
    @wraps(work)
    def whole(
        model: nn.Module, images: Samples, /, *others: P.args, **options: P.kwargs
    ) -> Outcome:
        return finish(work(model, images, *others, **options), images.device)

    return whole


#: Trains as `training` does, all steps one after the other, and returns the outcome.
train = _without_a_break(training)


def _step(
    model: nn.Module,
    images: Samples,
    targets: torch.Tensor,
    settings: Optimiser,
    loss: Loss,
    info: Mapping[str, Any],
    numerics: Numerics,
    gradient_term: GradientTerm | None,
) -> Step:
    """Return the step: from the numbers of samples to weights that have moved, all on the device.

    It changes tensors in place and asks the device for nothing, so that it can be recorded.
    """
    parameters = list(model.parameters())
    move = optimiser_step(parameters, settings)
    loss_of = model_loss(loss, numerics, settings.batch_size)

    def step(samples: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
        index, how = samples[0], samples[1:]
        pixels = normalise(augment(images[index], how), info)
        value = loss_of(model, pixels, targets[index])
        value.backward()
        if settings.clip_norm is not None:
            nn.utils.clip_grad_norm_(parameters, settings.clip_norm)
        if gradient_term is not None:
            gradient_term(parameters)
        move(sizes)
        _forget_gradients(parameters)
        return value.detach()

    return recorded(step, settings.batch_size) if numerics.cuda_graphs else step


def _rates(settings: Optimiser, rate: float, steps: int) -> list[float]:
    """Return the learning rate of each step."""
    factors = (factor(settings.schedule, step, steps) for step in range(steps))
    return [settings.learning_rate * rate * each for each in factors]


def _drawn(
    batches: Sequence[torch.Tensor], kind: str, generator: torch.Generator, device: torch.device
) -> Iterator[torch.Tensor]:
    """Yield each batch on the device, int64 [rows, b]: numbers of samples, then `images.draw`.

    Many batches go there at a time, so that the host has next to nothing to do for a step.
    """
    for first in range(0, len(batches), AHEAD):
        part = batches[first : first + AHEAD]
        draws = torch.cat([draw(kind, len(batch), generator) for batch in part], 1)
        samples = torch.cat([torch.cat(list(part))[None], draws])
        yield from on_device(samples, device).split([len(batch) for batch in part], 1)


def _forget_gradients(parameters: Sequence[nn.Parameter]) -> None:
    for parameter in parameters:
        parameter.grad = None


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
    _forget_gradients(parameters)
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
    finite = torch.stack([value.isfinite().all() for value in model.state_dict().values()]).all()
    told, weights_are_finite = losses.cpu(), bool(finite)
    steps = len(told)
    wrong = (~told.isfinite()).nonzero()
    if len(wrong):
        return Outcome(steps, math.nan, rate_sum, int(wrong[0]) + 1)
    if not weights_are_finite:
        return Outcome(steps, math.nan, rate_sum, steps)
    return Outcome(steps, float(told.mean()) if steps else 0.0, rate_sum, None)
