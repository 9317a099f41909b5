"""The mean of a text's embeddings, and a linear layer (Joulin et al., 2017, without n-grams)."""

import torch
from torch import nn

from fedstage.models.layers import attended
from fedstage.settings.models import EmbeddingBag


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


def network(settings: EmbeddingBag, shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return the network for texts of `shape` [L] tokens, each with at least one token."""
    return MeanEmbedding(settings, classes)
