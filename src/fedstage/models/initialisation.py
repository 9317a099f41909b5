"""Initial values of a model's parameters."""

import copy
from math import sqrt
from typing import TypeGuard

import torch
from torch import nn

from fedstage.errors import FedstageError
from fedstage.models.heads import prototypes_of
from fedstage.models.layers import ResidualBlock
from fedstage.settings.base import called, is_plugin
from fedstage.settings.models import Model, Upper
from fedstage.settings.plugins import describe_error, line_of_plugin

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


# --- a trial of a new model -----------------------------------------------------------------------

_SAMPLES = 2  # not one, for which a model may drop a dimension


def try_model(model: nn.Module, settings: Model, shape: tuple[int, ...], classes: int) -> None:
    """Run two samples through a copy of a plugin's model on the CPU; other models have tests.

    The model and all random generators stay unchanged.

    Parameters
    ----------
    shape : tuple of int
        [C, H, W] of an image; [F] of features, or of an instance of a bag; [L] of tokens.

    Raises
    ------
    FedstageError
        If the model does not take the samples, or returns anything but logits [n, classes].
    """
    samples = _samples(settings, shape) if is_plugin(settings) else None
    if samples is None:
        return
    named = called(settings, "model")
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        try:
            output = copy.deepcopy(model).eval()(samples)
        except (RuntimeError, ValueError, IndexError) as error:  # torch's, for wrong shapes
            told = f"{line_of_plugin(error)}{describe_error(error)}"
            raise FedstageError(f"{named}: with samples of shape {list(shape)}: {told}") from error
    expected = [_SAMPLES, classes + _more(model, settings)]
    if not isinstance(output, torch.Tensor):
        raise FedstageError(f"{named}: output {type(output).__name__}, must be a tensor")
    if list(output.shape) != expected:
        raise FedstageError(f"{named}: output {_shown(output.shape)}, must be {_shown(expected)}")


def _samples(settings: Model, shape: tuple[int, ...]) -> torch.Tensor | None:
    """Return samples as the model gets them; None where it takes several kinds of one shape."""
    if isinstance(settings, Upper):
        return torch.zeros(_SAMPLES, settings.width, *shape[1:])
    if settings.samples == ("tokens",):
        return torch.ones(_SAMPLES, *shape, dtype=torch.int64)
    if settings.samples == ("bags",):
        return torch.ones(_SAMPLES, 1, 1 + shape[0])
    return torch.zeros(_SAMPLES, *shape) if {*settings.samples} <= {"images", "features"} else None


def _more(model: nn.Module, settings: Model) -> int:
    """Return the number of outputs in addition to one per class."""
    more = settings.more_outputs
    return prototypes_of(model).shape[1] if more == "features" else more


def _shown(shape: torch.Size | list[int]) -> str:
    """Return a shape in which n stands for the number of samples, such as ``[n, 10]``."""
    sizes = ["n" if i == 0 and size == _SAMPLES else str(size) for i, size in enumerate(shape)]
    return f"[{', '.join(sizes)}]"
