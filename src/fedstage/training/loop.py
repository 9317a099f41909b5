"""The training loop of clients, pooled data and distilled students."""

import math
import pickle
import random
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
import torch
from torch import nn

from fedstage.data.bags import Samples
from fedstage.errors import FedstageError
from fedstage.settings.numerics import Numerics
from fedstage.settings.optimisation import Optimiser
from fedstage.training.batches import Backward, Batch, NoisyBatches, finish
from fedstage.training.devices import on_device
from fedstage.training.images import augment, draw, normalise
from fedstage.training.optimisers import factor, optimiser_step, step_sizes
from fedstage.training.passes import PLAIN, Loss, ModelLoss, model_loss

# --- steps as CUDA graphs -------------------------------------------------------------------------
#
# A training step as a CUDA graph: recorded once, then launched by the host in one call.
#
# A small model's step is hundreds of kernels, which a GPU runs faster than a host can launch them.
# A graph works on fixed tensors: the model's and the optimiser's, which the step changes in place,
# and copies of its arguments.

#: A training step: from samples [rows, b] and step sizes [2] to the loss, a tensor of one number.
Step = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]

#: Steps before the recorded one: libraries set themselves up in their first calls.
WARM_UP = 3


def recorded(step: Step) -> Step:
    """Return an equivalent step that runs as a graph, with one graph per batch size b.

    The first `WARM_UP` batches of a size run `step` itself: an epoch's last batch comes once per
    epoch. No step runs twice, nothing has to be undone, and a graph gives the same bytes as its
    step.

    Raises
    ------
    FedstageError
        If a step draws from a global generator: a graph would repeat what the host has drawn.
    """
    batches, graphs = Counter[int](), dict[int, Step]()

    def take(samples: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
        size = samples.shape[1]
        batches[size] += 1
        if batches[size] <= WARM_UP:
            before, loss = _global_states(), step(samples, sizes)
            if _global_states() != before:
                raise FedstageError("numerics.cuda_graphs = true: the model or its loss draws")
            return loss
        if size not in graphs:
            graphs[size] = _graph(step, samples, sizes)
        return graphs[size](samples, sizes)

    return take


def _global_states() -> bytes:
    """Return the states of the global generators."""
    of_torch = (torch.get_rng_state(), *torch.cuda.get_rng_state_all())
    of_others = random.getstate(), np.random.get_state()  # noqa: NPY002 (users draw from it)
    return pickle.dumps((of_others, [state.numpy() for state in of_torch]))


def _graph(step: Step, *first: torch.Tensor) -> Step:
    """Return a step as a graph for arguments of the shapes of `first`."""
    arguments = [each.clone(memory_format=torch.contiguous_format) for each in first]
    replay = record(lambda: step(*arguments))

    def take(*given: torch.Tensor) -> torch.Tensor:
        for argument, value in zip(arguments, given, strict=True):
            argument.copy_(value)
        return replay()

    return take


def record(step: Callable[[], torch.Tensor]) -> Callable[[], torch.Tensor]:
    """Record a step on the current stream without running it, and return a function that runs it.

    The stream must not be the default one (see `fedstage.training.batches`), and no other training
    may share it: the workspace that a library allocated on a stream is part of the graph.
    """
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=torch.cuda.current_stream()):
        loss = step()

    def replay() -> torch.Tensor:
        graph.replay()
        return loss

    return replay


# --- the loop -------------------------------------------------------------------------------------

#: A local trainer's term: adds to the gradients of the parameters in place, after clipping.
GradientTerm = Callable[[Sequence[nn.Parameter]], None]
#: Called with the number of steps so far; may evaluate the model, and true ends the training.
AfterStep = Callable[[int], bool]


AHEAD = 100  # batches copied to the device at a time


@dataclass(frozen=True)
class Outcome:
    """The result of a training."""

    steps: int
    loss: float  #: mean over the last pass over the samples; NaN after a divergence
    rate_sum: float  #: of the learning rates of all steps, the eta E of SCAFFOLD's option II
    #: The first step (from 1) whose loss is not finite, or the last if only the weights are not.
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
    objective: ModelLoss | None = None,
    gradient_term: GradientTerm | None = None,
    after_step: AfterStep | None = None,
    noisy: NoisyBatches | None = None,
    whose: str = "",
) -> Generator[None, None, Outcome]:
    """Train `model` in place, one step per batch.

    Yields after each step, so that trainings can take turns.

    Parameters
    ----------
    images : Samples
        uint8 [n, C, H, W], or samples of another kind, on the model's device.
    targets : torch.Tensor
        Labels [n] or teacher logits [n, classes], on the model's device.
    generator : torch.Generator
        Draws the augmentation.
    rate : float
        Factor of the learning rate in this round.
    objective : callable, optional
        What is minimised in place of the `loss` of the model's logits.
    noisy : NoisyBatches, optional
        How each sample's gradient is clipped and noise is added to their sum, for privacy.
    whose : str
        The beginning of messages.

    Raises
    ------
    FedstageError
        If the model does not train on a batch of one sample.
    """
    parameters = _start(model)
    loss_of = objective or model_loss(loss, numerics)

    def batch(samples: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        index, augmentation = samples[0], samples[1:]
        return normalise(augment(images[index], augmentation), info), targets[index]

    backward = _backward(model, loss_of, batch, noisy)
    take = _step(parameters, backward, settings, gradient_term, numerics.cuda_graphs)
    factors = (factor(settings.schedule, step, len(batches)) for step in range(len(batches)))
    rates = [settings.learning_rate * rate * each for each in factors]
    sizes = step_sizes(settings, rates, like=parameters[0])
    losses = torch.zeros(len(batches), device=images.device)
    steps, rate_sum = 0, 0.0
    for samples in _drawn(batches, settings.augmentation, generator, images.device):
        try:
            losses[steps] = take(samples, sizes[steps])
        except ValueError as error:  # batch normalisation's
            if samples.shape[1] != 1:
                raise
            raise FedstageError(
                f"{whose}a batch of one sample: {error}; choose a model without batch "
                "normalisation, clients with more samples, or another batch_size or last_batch"
            ) from error
        rate_sum += rates[steps]
        steps += 1
        if after_step is not None and after_step(steps):
            break
        yield
    last = _last_pass(batches[:steps], len(targets))
    return _outcome(model, losses[:steps], last, rate_sum)


def train(model: nn.Module, images: Samples, *others: Any, **options: Any) -> Outcome:
    """Run `training` with these arguments to its end, and return the outcome."""
    return finish(training(model, images, *others, **options), images.device)


def _backward(
    model: nn.Module, loss_of: ModelLoss, batch: Batch, noisy: NoisyBatches | None
) -> Backward:
    """Return a function that sets the gradients of the loss of a batch."""
    if noisy is not None:
        from fedstage.training.noisy_gradients import noisy_backward

        return noisy_backward(noisy, model, loss_of, batch)

    def backward(samples: torch.Tensor) -> torch.Tensor:
        value = loss_of(model, *batch(samples))
        value.backward()
        return value.detach()

    return backward


def _step(
    parameters: Sequence[nn.Parameter],
    backward: Backward,
    settings: Optimiser,
    gradient_term: GradientTerm | None,
    as_graph: bool,
) -> Step:
    """Return a training step; it can be a graph, since it never waits for the device."""
    move = optimiser_step(parameters, settings)

    def step(samples: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
        value = backward(samples)
        if settings.clip_norm is not None:
            nn.utils.clip_grad_norm_(parameters, settings.clip_norm)
        if gradient_term is not None:
            gradient_term(parameters)
        move(sizes)
        _drop_gradients(parameters)
        return value

    return recorded(step) if as_graph else step


def _drawn(
    batches: Sequence[torch.Tensor], kind: str, generator: torch.Generator, device: torch.device
) -> Iterator[torch.Tensor]:
    """Yield each batch on the device, int64 [rows, b]: sample indices, then `images.draw`.

    Many batches are copied at a time, so that a step costs the host very little.
    """
    for first in range(0, len(batches), AHEAD):
        part = batches[first : first + AHEAD]
        draws = torch.cat([draw(kind, len(batch), generator) for batch in part], 1)
        samples = torch.cat([torch.cat(list(part))[None], draws])
        yield from on_device(samples, device).split([len(batch) for batch in part], 1)


def _start(model: nn.Module) -> list[nn.Parameter]:
    """Put a model into training mode, and return its trained parameters without gradients."""
    model.train()
    parameters = [each for each in model.parameters() if each.requires_grad]
    _drop_gradients(parameters)
    return parameters


def _drop_gradients(parameters: Sequence[nn.Parameter]) -> None:
    for parameter in parameters:
        parameter.grad = None


def _last_pass(batches: Sequence[torch.Tensor], samples: int) -> int:
    """Return the number of last batches that have as many samples as there are."""
    sizes = accumulate(len(batch) for batch in reversed(batches))
    return next((i for i, held in enumerate(sizes, 1) if held >= samples), len(batches))


def _outcome(model: nn.Module, losses: torch.Tensor, last: int, rate_sum: float) -> Outcome:
    """Return the outcome; divergence is checked once, here, so no step waits for the device."""
    finite = torch.stack([value.isfinite().all() for value in model.state_dict().values()]).all()
    losses, steps = losses.cpu(), len(losses)
    diverged = (~losses.isfinite()).nonzero()
    if len(diverged) or not finite:
        return Outcome(steps, math.nan, rate_sum, int(diverged[0]) + 1 if len(diverged) else steps)
    return Outcome(steps, float(losses[-last:].mean()) if steps else 0.0, rate_sum, None)
