"""Initial values of a model's parameters."""

from math import sqrt
from typing import TypeGuard

import torch
from torch import nn

from fedstage.errors import FedstageError
from fedstage.models.layers import ResidualBlock

_EMBEDDING = 0.02  # standard deviation


@torch.no_grad()
def initialise(model: nn.Module, generator: torch.Generator, named: str = "model") -> None:
    """Set all parameters and buffers of a model on the CPU, in the order of its modules.

    `named` is the model's name in messages.

    - Convolutions: weights from N(0, 2 / fan_in), biases 0 (He et al., Delving Deep into
      Rectifiers, ICCV 2015, eq. 10). The paper allows fan_in or fan_out; fan_in keeps the variance
      of activations also from one input channel to many, which matters without norms.
    - Linear layers: weights and biases from U(-1/sqrt(fan_in), 1/sqrt(fan_in)).
    - LSTM layers: weights and biases from U(-1/sqrt(hidden), 1/sqrt(hidden)), as torch's.
    - Embeddings: weights from N(0, 0.02^2), as BERT's (Devlin et al. 2019).
    - Norms: weight 1, bias 0; running mean 0, variance 1, number of batches 0.
    - Layers with a method `initialise`: what it does with the generator.
    - Residual branches without norms: the last convolution divided by the square root of the number
      of branches; otherwise every block doubles the variance, and 27 of them diverge (De and Smith,
      Batch Normalization Biases Residual Blocks Towards the Identity Function, NeurIPS 2020).

    Raises
    ------
    FedstageError
        If there is no rule for a module's parameters.
    """
    for module in model.modules():
        _initialise_module(module, generator, named)
    branches = [block.conv2 for block in model.modules() if _adds_unnormalised(block)]
    for convolution in branches:
        convolution.weight.mul_(1 / sqrt(len(branches)))


def _adds_unnormalised(block: nn.Module) -> TypeGuard[ResidualBlock]:
    """Whether a module is a residual block without norms, ours or torchvision's."""
    norm = getattr(block, "norm2", getattr(block, "bn2", None))
    return isinstance(norm, nn.Identity)


def _initialise_module(module: nn.Module, generator: torch.Generator, named: str) -> None:
    if callable(own := getattr(module, "initialise", None)):
        own(generator)
    elif isinstance(module, nn.Conv2d):
        module.weight.normal_(0.0, sqrt(2 / module.weight[0].numel()), generator=generator)
        if module.bias is not None:
            module.bias.zero_()
    elif isinstance(module, nn.Linear):
        bound = 1 / sqrt(module.in_features)
        module.weight.uniform_(-bound, bound, generator=generator)
        if module.bias is not None:
            module.bias.uniform_(-bound, bound, generator=generator)
    elif isinstance(module, nn.LSTM):
        bound = 1 / sqrt(module.hidden_size)
        for parameter in module.parameters():
            parameter.uniform_(-bound, bound, generator=generator)
    elif isinstance(module, nn.Embedding):
        module.weight.normal_(0.0, _EMBEDDING, generator=generator)
    elif isinstance(module, nn.BatchNorm2d | nn.GroupNorm | nn.LayerNorm):
        module.reset_parameters()  # draws nothing
    elif next(module.parameters(recurse=False), None) is not None:
        raise FedstageError(
            f"{named}: {type(module).__name__}: no initialisation of this layer is known; give it "
            "a method initialise(generator) that sets its parameters"
        )
