"""FedGKD (Yao et al. 2023): a client also learns from the last global models.

A client that starts from w*_b minimises, with the last M = `models` global models up to w*_b,

    L = CE + (gamma / 2) D( f(x; w_bar), f(x; w) )     w_bar = (1/M) sum_j w*_{b-j}         (`mean`)
    L = CE + (gamma / 2) sum_j lambda_j D( f(x; w*_{b-j}), f(x; w) )                        (`vote`)
        lambda = softmax( -loss_j ), loss_j on the server's validation set
    D = T^2 mean KL( sigma_T(teacher), sigma_T(student) ), gradient only through the student

The mean is of weights, not of outputs. In the first M rounds there are fewer models, and in the
first round there is none: the initial model has learnt nothing, and the term is off, as released.
Teachers are frozen and use their own, or mean, running statistics. In the released code the
divergences of votes have no gradients and thus no effect; here they have gradients, as published.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from fedstage.algorithm.local_trainers import LocalTrainer, Task
from fedstage.data.samples import read_labelled
from fedstage.models.loading import frozen
from fedstage.settings.local_training import FedGkd
from fedstage.settings.numerics import Numerics
from fedstage.training.losses import mean_divergence
from fedstage.training.passes import ModelLoss, compute_logits, cross_entropy, forward
from fedstage.weights import Tensors, Weights


class Trainer(LocalTrainer[FedGkd]):
    """FedAvg whose clients minimise L."""

    def objective(self, task: Task) -> ModelLoss | None:
        """Return L; None for gamma = 0 or a first round, which is FedAvg bit for bit."""
        settings = self.settings
        if settings.gamma == 0 or not task.history:
            return None
        voting = settings.teacher == "vote"
        weights = task.history if voting else [mean_weights(task.history)]
        teachers = [_filled(task.model, model) for model in weights]
        shares = votes(task.losses) if voting else [1.0]

        def of_model(model: nn.Module, pixels: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
            with torch.no_grad():
                teachers_logits = [forward(teacher, pixels, task.numerics) for teacher in teachers]
            logits = forward(model, pixels, task.numerics)
            loss = task.loss(logits, labels)
            for share, taught in zip(shares, teachers_logits, strict=True):
                loss = loss + settings.gamma / 2 * share * distance(settings, taught, logits)
            return loss

        return of_model


def distance(settings: FedGkd, taught: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
    """Return D of a teacher's and a student's logits, both [b, classes]."""
    t = settings.temperature
    return t**2 * mean_divergence(taught / t, logits / t)


def votes(losses: Sequence[float]) -> list[float]:
    """Return lambda, the votes of models with these losses."""
    return [float(share) for share in (-torch.tensor(losses, dtype=torch.float64)).softmax(0)]


def mean_weights(models: Sequence[Tensors]) -> Weights:
    """Return the mean of models, summed in float64; batch counters are rounded.

    Up to the last bit this is `aggregation`'s average with equal weights; that package imports this
    one.
    """
    mean: Weights = {}
    for name, like in models[0].items():
        total = torch.stack([model[name].double() for model in models]).mean(0)
        mean[name] = (total if like.is_floating_point() else total.round()).to(like.dtype)
    return mean


def _filled(model: nn.Module, weights: Tensors) -> nn.Module:
    """Return a frozen copy of a model with these weights."""
    teacher = frozen(model)
    teacher.load_state_dict(weights)
    return teacher


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
