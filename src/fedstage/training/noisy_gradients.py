"""DP-SGD: the gradient of a batch from clipped gradients of its samples, with noise.

With g_j the gradient of sample j over all parameters together, C the `clip`, z the `noise` and b
the expected number of samples of a batch (Abadi et al. 2016, Algorithm 1),

    g = 1/b (sum_j g_j min(1, C / ||g_j||) + N(0, z^2 C^2 I))

so that a sample moves the sum by at most C, regardless of the others. An empty batch gives only
noise.
"""

from collections.abc import Mapping

import torch
from torch import nn
from torch.func import functional_call, grad_and_value, vmap

from fedstage.training.batches import Backward, Batch, NoisyBatches
from fedstage.training.passes import ModelLoss

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
    sizes = sum(value.numel() for value in parameters.values())
    at_a_time = max(1, PART // sizes)

    def loss_of(weights: Mapping[str, torch.Tensor], *sample: torch.Tensor) -> torch.Tensor:
        value: torch.Tensor = functional_call(module, dict(weights), sample)
        return value

    each = vmap(grad_and_value(loss_of), in_dims=(None, 0, 0))

    def backward(samples: torch.Tensor) -> torch.Tensor:
        sums = {name: torch.zeros_like(value) for name, value in parameters.items()}
        total = samples.new_zeros((), dtype=torch.float32)
        if samples.shape[1]:
            parts = (whole.split(at_a_time) for whole in batch(samples))
            for pixels, targets in zip(*parts, strict=True):
                gradients, losses = each(parameters, pixels, targets)
                add_clipped(sums, gradients, how.clip)
                total = total + losses.sum()
        _add_noise(sums, how)
        for name, parameter in module.named_parameters():
            parameter.grad = sums[name].div_(how.expected)
        return total / how.expected

    return backward


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
