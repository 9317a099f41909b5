"""LSTM layers for texts, as a client of Fed-ET has (Cho et al. 2022, Appendix C)."""

import torch
from torch import nn

from fedstage.models.tokens import attended
from fedstage.settings.models import Lstm


class LastState(nn.Module):
    """LSTM layers over a text, and a linear layer on where they end."""

    def __init__(self, settings: Lstm, outputs: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(settings.vocabulary, settings.embedding)
        self.lstm = nn.LSTM(settings.embedding, settings.hidden, settings.layers, batch_first=True)
        self.linear = nn.Linear(settings.hidden, outputs)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Map tokens [n, L], padded with 0, to logits [n, classes].

        A state depends on no later token, so that the last one of a text does not depend on
        padding.
        """
        lengths = attended(tokens).sum(1)
        if not torch.compiler.is_exporting():  # an exported graph has one length
            tokens = tokens[:, : int(lengths.max())]  # tweets are far shorter than their limit
        states, _ = self.lstm(self.embedding(tokens.long()))
        places = torch.arange(states.shape[1], device=tokens.device)
        ends = (places == lengths[:, None] - 1).unsqueeze(2)
        # Not an index by text, whose gradient a GPU adds up in no fixed order.
        logits: torch.Tensor = self.linear(torch.where(ends, states, 0.0).sum(1))
        return logits


def network(settings: Lstm, shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return an LSTM for texts of `shape` [L] tokens, of which each has one at least."""
    return LastState(settings, classes)
