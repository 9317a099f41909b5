"""Texts as models take them: tokens [n, L], each text filled up behind its end."""

import torch

PADDING = 0  #: the number of the padding token


def attended(tokens: torch.Tensor) -> torch.Tensor:
    """Return which of the tokens [n, L] belong to a text, bool [n, L]."""
    return tokens != PADDING
