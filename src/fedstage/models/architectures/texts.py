"""Networks for texts: LSTM layers, and the mean of embeddings.

The first is as in a client of Fed-ET (Cho et al. 2022, Appendix C), the second as in Joulin et al.
2017, without n-grams.
"""

import torch
from torch import nn

from fedstage.models.layers import attended
from fedstage.settings.models import EmbeddingBag, Lstm


def network(settings: Lstm | EmbeddingBag, shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return the network that the settings are of."""
    if isinstance(settings, Lstm):
        return lstm(settings, shape, classes)
    return embedding_bag(settings, shape, classes)


class LastState(nn.Module):
    """LSTM layers over a text, and a linear layer on their last state."""

    def __init__(self, settings: Lstm, outputs: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(settings.vocabulary, settings.embedding)
        self.lstm = nn.LSTM(settings.embedding, settings.hidden, settings.layers, batch_first=True)
        self.linear = nn.Linear(settings.hidden, outputs)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Map tokens [n, L], padded with 0, to logits [n, classes].

        A state depends on no later token, so a text's last state does not depend on padding.
        """
        lengths = attended(tokens).sum(1)
        if not torch.compiler.is_exporting():  # an exported graph has one length
            tokens = tokens[:, : int(lengths.max())]  # tweets are far shorter than their limit
        states, _ = self.lstm(self.embedding(tokens.long()))
        places = torch.arange(states.shape[1], device=tokens.device)
        ends = (places == lengths[:, None] - 1).unsqueeze(2)
        # Not indexed by text: a GPU would sum the gradient of an index in no fixed order.
        logits: torch.Tensor = self.linear(torch.where(ends, states, 0.0).sum(1))
        return logits


def lstm(settings: Lstm, shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return an LSTM for texts of `shape` [L] tokens, each with at least one token."""
    return LastState(settings, classes)


class MeanEmbedding(nn.Module):
    """The mean of the embeddings of a text's tokens, and a linear layer on it."""

    def __init__(self, settings: EmbeddingBag, outputs: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(settings.vocabulary, settings.embedding)
        self.linear = nn.Linear(settings.embedding, outputs)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Map tokens [n, L], padded with 0, to logits [n, classes]."""
        belongs = attended(tokens).unsqueeze(2)
        total = torch.where(belongs, self.embedding(tokens.long()), 0.0).sum(1)
        logits: torch.Tensor = self.linear(total / belongs.sum(1))
        return logits


def embedding_bag(settings: EmbeddingBag, shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return the network for texts of `shape` [L] tokens, each with at least one token."""
    return MeanEmbedding(settings, classes)
