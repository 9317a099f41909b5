"""Initial values of a model's parameters."""

import copy
from collections.abc import Sequence
from math import sqrt
from typing import TypeGuard

import torch
from torch import nn
from torch.nn.modules.lazy import LazyModuleMixin

from fedstage.errors import FedstageError
from fedstage.models.heads import prototypes_of
from fedstage.models.layers import ResidualBlock
from fedstage.randomness import drawing_from
from fedstage.settings.base import called
from fedstage.settings.models import Model, Upper
from fedstage.settings.plugins import describe_error, line_of_plugin

_EMBEDDING = 0.02  # standard deviation


@torch.no_grad()
def initialise(model: nn.Module, generator: torch.Generator, own: bool = False) -> None:
    """Set the parameters and buffers of a model on the CPU, in the order of its modules.

    With `own`, and for other layers than these, construction is the initialisation.

    - Layers with a method `initialise`: what it does with the generator, for all layers in them.
    - Convolutions: weights from N(0, 2 / fan_in), biases 0 (He et al., Delving Deep into
      Rectifiers, ICCV 2015, eq. 10). The paper allows fan_in or fan_out; fan_in keeps the variance
      of activations also from one input channel to many, which matters without norms.
    - Linear layers: weights and biases from U(-1/sqrt(fan_in), 1/sqrt(fan_in)).
    - LSTM layers: weights and biases from U(-1/sqrt(hidden), 1/sqrt(hidden)), as torch's.
    - Embeddings: weights from N(0, 0.02^2), as BERT's (Devlin et al. 2019).
    - Norms: weight 1, bias 0; running mean 0, variance 1, number of batches 0.
    - Residual branches without norms: the last convolution divided by the square root of the number
      of branches; otherwise every block doubles the variance, and 27 of them diverge (De and Smith,
      Batch Normalization Biases Residual Blocks Towards the Identity Function, NeurIPS 2020).
    """
    _initialise(model, generator, own)
    branches = (
        [] if own else [block.conv2 for block in model.modules() if _adds_unnormalised(block)]
    )
    for convolution in branches:
        convolution.weight.mul_(1 / sqrt(len(branches)))


def _adds_unnormalised(block: nn.Module) -> TypeGuard[ResidualBlock]:
    """Whether a module is a residual block without norms, ours or torchvision's."""
    norm = getattr(block, "norm2", getattr(block, "bn2", None))
    return isinstance(norm, nn.Identity)


def _initialise(module: nn.Module, generator: torch.Generator, own: bool) -> None:
    if callable(itself := getattr(module, "initialise", None)):
        itself(generator)
        return
    if not own:
        _initialise_layer(module, generator)
    for child in module.children():
        _initialise(child, generator, own)


def _initialise_layer(module: nn.Module, generator: torch.Generator) -> None:
    if isinstance(module, nn.Conv2d):
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


# --- a trial of a new model -----------------------------------------------------------------------


def try_model(
    model: nn.Module, settings: Model, shape: tuple[int, ...], classes: int, least: int
) -> None:
    """Run two samples through a new model on the CPU, and in training also batches of `least`.

    The model and all random generators stay unchanged.

    Parameters
    ----------
    shape : tuple of int
        [C, H, W] of an image; [F] of features, or of an instance of a bag; [L] of tokens.

    Raises
    ------
    FedstageError
        If a layer is lazy, or the model does not take the samples, or returns anything but logits
        [n, classes].
    """
    named = called(settings, "model")
    for place, layer in model.named_modules():
        if isinstance(layer, LazyModuleMixin):
            kind = layer.cls_to_become.__name__ if layer.cls_to_become else type(layer).__name__
            raise FedstageError(
                f"{named}: {place}: Lazy{kind}: must be given its sizes, which follow from shape "
                "and classes"
            )
    expected = _shown(2, [2, classes + _more(model, settings)])
    for count, training in ((2, False), (2, True), (least, True)):
        samples = _samples(settings, shape, count)
        if samples is None:
            return
        many = (
            f"{count} sample{'s' * (count > 1)} of shape {list(shape)}{' in training' * training}"
        )
        with torch.no_grad(), drawing_from("trial"):
            try:
                output = copy.deepcopy(model).train(training)(samples)
            except (RuntimeError, ValueError, IndexError) as error:  # torch's, for wrong shapes
                told = f"{line_of_plugin(error)}{describe_error(error)}"
                raise FedstageError(f"{named}: with {many}: {told}") from error
        if not isinstance(output, torch.Tensor):
            raise FedstageError(f"{named}: output {type(output).__name__}, must be a tensor")
        if (found := _shown(count, output.shape)) != expected:
            raise FedstageError(f"{named}: output {found}, must be {expected}")


def _samples(settings: Model, shape: tuple[int, ...], count: int) -> torch.Tensor | None:
    """Return samples as the model gets them; None where it takes several kinds of one shape."""
    if isinstance(settings, Upper):
        return torch.zeros(count, settings.width, *shape[1:])
    if settings.samples == ("tokens",):
        return torch.ones(count, *shape, dtype=torch.int64)
    if settings.samples == ("bags",):
        return torch.ones(count, 1, 1 + shape[0])
    return torch.zeros(count, *shape) if {*settings.samples} <= {"images", "features"} else None


def _more(model: nn.Module, settings: Model) -> int:
    """Return the number of outputs in addition to one per class."""
    more = settings.more_outputs
    return prototypes_of(model).shape[1] if more == "features" else more


def _shown(count: int, shape: Sequence[int]) -> str:
    """Return a shape in which n stands for the number of samples, such as ``[n, 10]``."""
    first = ["n" if size == count else str(size) for size in shape[:1]]
    return f"[{', '.join([*first, *map(str, shape[1:])])}]"
