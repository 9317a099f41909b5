"""FedFTG as released: what the generator minimises, with one client per step.

    L_k = mean alpha_k^y lambda_cls mean CE(f_k(x), y) - mean alpha_k^y mean_c | f_k(x) - f(x; w) |
          + lambda_dis L_dis / m

The client's logits are fixed in the difference. The cross entropy is a mean over the batch before
it is multiplied by alpha, which is thus the client's mean share.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from fedstage.algorithm.global_trainers.generators import Distance, Made
from fedstage.algorithm.global_trainers.generators.fedftg import likeness
from fedstage.settings.generators import FedFtgAsReleased


def turns(settings: FedFtgAsReleased, clients: int) -> Sequence[Sequence[int]]:
    """Return one client for each step, all in turn."""
    return [[client] for client in range(clients)] * settings.steps


def loss(settings: FedFtgAsReleased, made: Made, distance: Distance) -> Tensor:
    """Return L_k."""
    ((teacher,), (share,)) = made.members, made.shares
    away = (made.student - teacher.detach()).abs().mean(1)
    right = settings.classification * (cross_entropy(teacher, made.labels) * share).mean()
    alike = settings.diversity * likeness(made.pixels, made.latent) / made.clients
    return torch.stack([right, -(away * share).mean(), alike]).sum()
