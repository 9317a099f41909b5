"""Check that a plugin's loss returns one number."""

from collections.abc import Callable
from typing import ParamSpec

import torch

from fedstage.errors import FedstageError
from fedstage.settings.base import Choice, called, is_plugin

P = ParamSpec("P")


def scalar(loss: Callable[P, torch.Tensor], part: Choice, key: str) -> Callable[P, torch.Tensor]:
    """Return the loss of a `part` of the settings; a plugin's loss has its result checked.

    Raises
    ------
    FedstageError
        When a plugin's loss returns anything but a tensor of one number without dimensions.
    """
    return _checked(loss, called(part, key)) if is_plugin(part) else loss


def _checked(loss: Callable[P, torch.Tensor], named: str) -> Callable[P, torch.Tensor]:
    def checked(*args: P.args, **kwargs: P.kwargs) -> torch.Tensor:
        value = loss(*args, **kwargs)
        if not isinstance(value, torch.Tensor) or value.dim():
            told = list(value.shape) if isinstance(value, torch.Tensor) else type(value).__name__
            raise FedstageError(
                f"{named}: the loss of a batch is {told}, must be a tensor of one number, the mean"
            )
        return value

    return checked
