"""DFRD (Luo et al., NeurIPS 2023): what the generator minimises.

    L_G = mean_x ( CE(z(x), y) - beta e(x) D(z(x) -> f(x; w)) ) + lambda_dis L_dis
    z(x) = sum_k alpha_k^y f_k(x),    e(x) = 1 where z is right and f(x; w) is wrong, else 0

L_dis and D are FedFTG's. The student learns from z by D, and `recall` times from z on images of the
moving average of the generators of earlier rounds.
"""

from torch import Tensor
from torch.nn.functional import cross_entropy

from fedstage.algorithm.global_trainers.generators import Distance, Made, fused
from fedstage.algorithm.global_trainers.generators.fedftg import likeness, turns
from fedstage.settings.generators import Dfrd

__all__ = ["loss", "turns"]


def loss(settings: Dfrd, made: Made, distance: Distance) -> Tensor:
    """Return L_G."""
    taught = fused(made.members, made.shares)
    right = taught.argmax(1) == made.labels
    between = right & (made.student.argmax(1) != made.labels)
    away = (between * distance(made.student, taught)).mean()
    fidelity = settings.classification * cross_entropy(taught, made.labels)
    alike = settings.diversity * likeness(made.pixels, made.latent)
    return fidelity - settings.transferability * away + alike
