"""DP-SGD: the gradient of a batch from clipped gradients of its samples, with noise.

With g_j the gradient of sample j over all parameters together, C the `clip`, z the `noise` and b
the expected number of samples of a batch (Abadi et al. 2016, Algorithm 1),

    g = 1/b (sum_j g_j min(1, C / ||g_j||) + N(0, z^2 C^2 I))

so that a sample moves the sum by at most C, regardless of the others. An empty batch gives only
noise.
"""

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import nn
from torch.func import functional_call, grad_and_value, vmap

from fedstage.training.batches import Backward, Batch, NoisyBatches
from fedstage.training.passes import ModelLoss
from fedstage.weights import Weights

#: How many numbers of per-sample gradients are held at a time.
PART = 2**25


class _SampleLoss(nn.Module):
    """The loss of a model for one sample, as a module whose parameters can be replaced."""

    def __init__(self, model: nn.Module, loss: ModelLoss) -> None:
        super().__init__()
        self.model, self.loss = model, loss

    def forward(self, pixels: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Map pixels [C, H, W] and a target to a number."""
        return self.loss(self.model, pixels[None], target[None])


def noisy_backward(how: NoisyBatches, model: nn.Module, loss: ModelLoss, batch: Batch) -> Backward:
    """Return a function that sets the parameters' gradients to g, and returns the batch's loss.

    The loss is the sum over samples divided by b, which is the mean loss in expectation.

    Parameters
    ----------
    loss : callable
        A mean over samples, in which each term depends on its own sample alone.
    batch : callable
        Returns the pixels and targets of a batch that is not empty.
    """
    module = _SampleLoss(model, loss)
    parameters = {name: value.detach() for name, value in module.named_parameters()}

    def loss_of(weights: Weights, *sample: torch.Tensor) -> torch.Tensor:
        value: torch.Tensor = functional_call(module, dict(weights), sample)
        return value

    def backward(samples: torch.Tensor) -> torch.Tensor:
        drawn = batch(samples) if samples.shape[1] else ()
        gradients, value = noisy_gradient(how, loss_of, parameters, drawn)
        for name, parameter in module.named_parameters():
            parameter.grad = gradients[name]
        return value

    return backward


def noisy_gradient(
    how: NoisyBatches,
    loss_of: Callable[..., torch.Tensor],
    parameters: Weights,
    samples: Sequence[torch.Tensor],
) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """Return g and the sum of the samples' losses divided by b.

    Parameters
    ----------
    loss_of : callable
        Maps parameters, and a row of each of `samples`, to the loss of this sample.
    samples : sequence of torch.Tensor
        What the loss needs of each sample, [n, ...] each; nothing, or n = 0, is an empty batch.
    """
    at_a_time = max(1, PART // sum(value.numel() for value in parameters.values()))
    each = vmap(grad_and_value(loss_of), (None, *(0 for _ in samples)), randomness="different")
    sums = {name: torch.zeros_like(value) for name, value in parameters.items()}
    total = next(iter(sums.values())).new_zeros((), dtype=torch.float32)
    if len(samples) and len(samples[0]):
        for part in zip(*(whole.split(at_a_time) for whole in samples), strict=True):
            gradients, losses = each(parameters, *part)
            add_clipped(sums, gradients, how.clip)
            total = total + losses.sum()
    _add_noise(sums, how)
    return {name: value.div_(how.expected) for name, value in sums.items()}, total / how.expected


def add_clipped(
    sums: Mapping[str, torch.Tensor], gradients: Mapping[str, torch.Tensor], clip: float | None
) -> None:
    """Add samples' gradients [n, ...], each clipped to length `clip`, to sums [...] in place.

    A sample's gradient consists of all tensors together.
    """
    count = len(next(iter(gradients.values())))
    factors = torch.ones(count, dtype=torch.float64)
    if clip is not None:
        squares = [
            torch.linalg.vector_norm(value.reshape(count, -1), dim=1, dtype=torch.float64).square()
            for value in gradients.values()
        ]
        factors = (clip / torch.stack(squares).sum(0).sqrt()).clamp(max=1.0)
    for name, value in gradients.items():
        sums[name].add_(torch.tensordot(factors.to(value), value, 1))


def _add_noise(sums: Mapping[str, torch.Tensor], how: NoisyBatches) -> None:
    """Add noise to each number, in the order of names; it is drawn on the CPU for all devices."""
    if not how.noise or how.clip is None:
        return
    for name in sorted(sums):
        drawn = torch.randn(sums[name].shape, generator=how.generator)
        sums[name].add_(drawn.to(sums[name]), alpha=how.noise * how.clip)
