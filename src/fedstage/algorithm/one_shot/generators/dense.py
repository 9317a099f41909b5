"""DENSE (Zhang et al., NeurIPS 2022).

    L_G = CE(z, y) + lambda_1 L_BN - lambda_2 mean [argmax student != argmax z] KL(z -> student)

L_BN is the mean over clients (as released: the sum) of the sum over layers of || mean - running
mean || + || variance - running variance ||. The teacher is always the mean of the clients' logits.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from fedstage.algorithm.one_shot.generators.world import Made, Method
from fedstage.settings.generators import Dense
from fedstage.training.losses import each_divergence


def method(settings: Dense, info: Mapping[str, Any]) -> Method:
    """Return DENSE."""
    far = torch.mean if settings.norms == "mean" else torch.sum

    def loss(made: Made) -> torch.Tensor:
        disagree = made.student.argmax(1) != made.teacher.argmax(1)
        away = divergence(made, settings.temperature) * disagree
        right = cross_entropy(made.teacher, made.labels) - settings.adversarial * away.mean()
        return right + settings.batch_norm * far(made.statistics) if settings.batch_norm else right

    return Method(loss, watches=settings.batch_norm > 0)


def divergence(made: Made, temperature: float) -> torch.Tensor:
    """Return T^2 KL( softmax(z / T), softmax(student / T) ) of each sample, [b]."""
    return temperature**2 * each_divergence(made.teacher / temperature, made.student / temperature)
