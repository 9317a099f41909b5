"""FedFTG (Zhang et al., CVPR 2022): what the generator minimises.

    L_G = sum_k mean_x alpha_k^y ( lambda_cls CE(f_k(x), y) - D(f_k(x) -> f(x; w)) )
          + lambda_dis L_dis
    L_dis = exp( - mean_{a,b} mean | x_a - x_b | mean (z_a - z_b)^2 )    over all pairs of a batch

D is the divergence that the student minimises.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from fedstage.algorithm.global_trainers.generators import Distance, Made
from fedstage.settings.generators import FedFtg


def turns(settings: FedFtg, clients: int) -> Sequence[Sequence[int]]:
    """Return all clients for each step."""
    return [range(clients)] * settings.steps


def loss(settings: FedFtg, made: Made, distance: Distance) -> Tensor:
    """Return L_G."""
    right = [cross_entropy(member, made.labels, reduction="none") for member in made.members]
    away = [distance(made.student, member) for member in made.members]
    each = settings.classification * torch.stack(right) - torch.stack(away)
    together = (made.shares * each).sum(0).mean()
    return together + settings.diversity * likeness(made.pixels, made.latent)


def likeness(pixels: Tensor, latent: Tensor) -> Tensor:
    """Return L_dis of images [b, C, H, W] and z [b, latent]: 1 where all images are the same."""
    flat = pixels.flatten(1)
    apart = torch.stack([(flat - image).abs().mean(1) for image in flat])
    drawn = torch.stack([(latent - z).square().mean(1) for z in latent])
    return (-apart * drawn).mean().exp()
