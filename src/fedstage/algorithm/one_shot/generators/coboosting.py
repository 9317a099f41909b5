"""Co-Boosting (Dai et al., ICLR 2024).

    generator  L_G = mean (1 - p_y)^h CE(z, y) - lambda mean KL_T(z -> student)   p_y fixed
    samples    x + eps sign( grad_x u . softmax(z(x) / 4) ),    u uniform in [-1, 1]
    weights    w <- clamp( w - mu decay^epoch sign grad_w CE(z_w(x), y), 0, 1 )    each batch

p_y is the teacher's probability of the label. The weights are not normalised. eps is in pixels of
[0, 1].
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from fedstage.algorithm.one_shot.generators.dense import divergence
from fedstage.algorithm.one_shot.generators.world import Made, Method, combined
from fedstage.settings.generators import CoBoosting

SOFTENED = 4.0  # of the teacher's logits where samples are moved


def method(settings: CoBoosting, info: Mapping[str, Any]) -> Method:
    """Return Co-Boosting, for images standardised by the mean and deviation in `info`."""

    def loss(made: Made) -> Tensor:
        each = cross_entropy(made.teacher, made.labels, reduction="none")
        hardness = (1 - (-each.detach()).exp()).clamp(min=0) ** settings.hardness
        away = divergence(made, settings.temperature)
        return (hardness * each).mean() - settings.adversarial * away.mean()

    def perturbed(
        teacher: Callable[[Tensor], Tensor], pixels: Tensor, generator: torch.Generator
    ) -> Tensor:
        seen = pixels.detach().requires_grad_()
        probabilities = (teacher(seen) / SOFTENED).softmax(1)
        towards = (
            torch.empty(probabilities.shape)
            .uniform_(-1, 1, generator=generator)
            .to(probabilities.device)
        )
        (gradient,) = torch.autograd.grad((towards * probabilities).sum(), seen)
        step = settings.step / seen.new_tensor(info["std"]).view(1, -1, 1, 1)
        return (seen + step * gradient.sign()).detach()

    def moved(weights: Tensor, logits: Tensor, labels: Tensor, epoch: int) -> Tensor:
        at = weights.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(cross_entropy(combined(at, logits), labels), at)
        rate = settings.weight_step * settings.weight_decay**epoch
        return (weights - rate * gradient.sign()).clamp(0, 1)

    return Method(
        loss,
        perturbed=perturbed if settings.step else None,
        moved=moved if settings.weight_step else None,
    )
