"""The loss of clients that learn an unknown class (FedOV, Diao et al. 2023).

With outliers x', class C behind the classes 0 to C-1, and a permutation b of the batch:

    L = CE(f(x), y) + CE(f(x'), C) + CE(f(x' + d), C)
      + second CE(f(x) with -10000 at y, C)                      the unknown class ranks second
      + mixed mean CE(beta f(x) + (1 - beta) f(x_b), C)          over pairs with y != y_b

beta is uniform, one per batch. d is found by steps of step sign(grad CE(f(x' + d), C)), with each
component at most the radius, and with running statistics. The released code mixes the features of a
hidden layer. For its ResNets this is the last one, whose mixture is the logits' mixture, as here
for all models; for its small networks it is the one before. Samples and outliers form one batch, as
released for models with BatchNorm. In the released code, the first step of the attack also moves
the outliers of the second term, by accident, and d has no bound, because its reference moves, too;
images are never clipped. Its weights are 1, 1 and 0.01. Its code for ResNets has only the first two
terms (attack null, second 0, mixed 0).
"""

from dataclasses import dataclass

import torch
from torch import nn

from fedstage.algorithm.one_shot.outliers import outliers
from fedstage.protocol.one_shot import changes_loss
from fedstage.settings.numerics import Numerics
from fedstage.settings.one_shot_clients import Attack, Unknown
from fedstage.training.passes import Loss, ModelLoss, forward

MASKED = -10_000.0


@dataclass(frozen=True)
class Means:
    """What a client needs to compute its loss.

    `generator`, on the CPU, draws outliers and mixtures. `unit`, [1, C, 1, 1] or a scalar, is the
    change in a model's input for a change of a pixel, or of a feature, by 1.
    """

    loss: Loss
    numerics: Numerics
    generator: torch.Generator
    unit: torch.Tensor


def objective(settings: Unknown, means: Means) -> ModelLoss | None:
    """Return the loss that a client minimises; None for the plain loss of its labels."""
    if not changes_loss(settings):
        return None

    def of_model(model: nn.Module, pixels: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        seen = torch.cat([pixels, *made(settings, model, pixels, means)])
        clean, *others = forward(model, seen, means.numerics).split(len(pixels))
        unknown = unknown_labels(clean)
        value = means.loss(clean, labels)
        for logits in others:
            value = value + means.loss(logits, unknown)
        if settings.second:
            value = value + settings.second * means.loss(without(clean, labels), unknown)
        if settings.mixed:
            value = value + settings.mixed * of_mixed(clean, labels, means)
        return value

    return of_model


def made(
    settings: Unknown, model: nn.Module, pixels: torch.Tensor, means: Means
) -> list[torch.Tensor]:
    """Return x' and x' + d, or the ones of them that the settings ask for."""
    if settings.outliers is None:
        return []
    first = outliers(settings.outliers, pixels, means.generator)
    return [first, *([attacked(settings.attack, model, first, means)] if settings.attack else [])]


def attacked(
    settings: Attack, model: nn.Module, samples: torch.Tensor, means: Means
) -> torch.Tensor:
    """Return outliers that are changed slightly, towards the known classes."""
    reach, moved = settings.radius * means.unit, samples
    model.eval()
    for _ in range(settings.steps):
        moved = moved.detach().requires_grad_()
        logits = forward(model, moved, means.numerics)
        (slope,) = torch.autograd.grad(means.loss(logits, unknown_labels(logits)), moved)
        moved = moved.detach() + settings.step * means.unit * slope.sign()
        moved = torch.minimum(torch.maximum(moved, samples - reach), samples + reach)
    model.train()
    return moved


def without(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return logits [b, C + 1] in which the label's logit cannot be the largest."""
    lost = torch.full_like(labels, MASKED, dtype=logits.dtype)[:, None]
    return logits.scatter_add(1, labels[:, None], lost)


def of_mixed(logits: torch.Tensor, labels: torch.Tensor, means: Means) -> torch.Tensor:
    """Return the loss of mixed pairs of different classes; 0 if there are none."""
    share = float(torch.rand((), generator=means.generator))
    other = torch.randperm(len(labels), generator=means.generator).to(labels.device)
    differ = labels != labels[other]
    if not differ.any():
        return logits.new_zeros(())
    mixed = (share * logits + (1 - share) * logits[other])[differ]
    return means.loss(mixed, unknown_labels(mixed))


def unknown_labels(logits: torch.Tensor) -> torch.Tensor:
    """Return the label C for each row of logits [b, C + 1]."""
    return torch.full((len(logits),), logits.shape[1] - 1, device=logits.device)
