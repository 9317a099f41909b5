"""A trial of a plugin's model: whether it takes the data set's samples and gives their logits."""

import copy

import torch
from torch import nn

from fedstage.errors import FedstageError
from fedstage.models.prototypes import prototypes_of
from fedstage.settings.base import called, is_plugin
from fedstage.settings.models import Model, Upper
from fedstage.settings.plugins import describe_error, line_of_plugin

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
