"""Parts that models of the package `transformers` share: import, mask, and maximum length."""

from typing import Any

import torch
from torch import nn

from fedstage.errors import FedstageError
from fedstage.models.layers import attended
from fedstage.settings.models import Transformer


class TextClassifier(nn.Module):
    """A network of `transformers`, with a mask of the padding."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Map tokens [n, L], padded with 0, to logits [n, classes]."""
        mask = attended(tokens).long()
        logits: torch.Tensor
        logits = self.network(input_ids=tokens.long(), attention_mask=mask).logits
        return logits


def package_for(settings: Transformer, shape: tuple[int, ...]) -> Any:
    """Return the package `transformers`, for a model of texts of `shape` [L] tokens.

    Raises
    ------
    FedstageError
        If it is not installed, or texts are longer than the model has positions.
    """
    try:
        import transformers
    except ImportError as error:
        raise FedstageError(
            f"model = {settings.name}: needs the package transformers ({error}); install the extra "
            "text: uv sync --extra text"
        ) from None
    (length,) = shape
    if length > settings.positions:
        raise FedstageError(
            f"model.positions = {settings.positions}: the data has texts of {length} tokens"
        )
    return transformers
