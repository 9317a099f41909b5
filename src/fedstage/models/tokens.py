"""Texts as models take them: tokens [n, L], with each text padded at its end."""

import torch

PADDING = 0  #: the number of the padding token


def attended(tokens: torch.Tensor) -> torch.Tensor:
    """Return a mask, bool [n, L], of the tokens [n, L] that belong to a text."""
    return tokens != PADDING
