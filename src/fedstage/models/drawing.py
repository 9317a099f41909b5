"""Initial weights of networks that generate images, like PyTorch's defaults for layers."""

from math import sqrt

import torch
from torch import nn


@torch.no_grad()
def draw_parameters(model: nn.Module, generator: torch.Generator) -> None:
    """Draw weights and biases from U(-1/sqrt(fan_in), 1/sqrt(fan_in)), in the order of modules.

    The fan-in of a transposed convolution is PyTorch's: its output channels times its kernel. Norms
    have weight 1 and bias 0.
    """
    for layer in model.modules():
        if isinstance(layer, nn.Linear | nn.Conv2d | nn.ConvTranspose2d):
            bound = 1 / sqrt(layer.weight[0].numel())
            for parameter in layer.parameters(recurse=False):
                parameter.uniform_(-bound, bound, generator=generator)
        elif isinstance(layer, nn.BatchNorm2d):
            layer.reset_parameters()  # draws nothing
