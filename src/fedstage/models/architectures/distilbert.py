"""DistilBERT with a classifier (Sanh et al. 2019); the layers are those of `transformers`."""

import torch
from torch import nn

from fedstage.errors import FedstageError
from fedstage.settings.models import DistilBert

PADDING = 0  # the number of the padding token


class TextClassifier(nn.Module):
    """A network of `transformers`, with a mask of the padding."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Map tokens [n, L], padded with 0, to logits [n, classes]."""
        attended = (tokens != PADDING).long()
        logits: torch.Tensor
        logits = self.network(input_ids=tokens.long(), attention_mask=attended).logits
        return logits


def network(settings: DistilBert, shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return DistilBERT for texts of at most `shape` [L] tokens, without dropout.

    Dropout would draw from torch's global generator.

    Raises
    ------
    FedstageError
        If `transformers` is not installed, or texts are longer than the model has positions.
    """
    try:
        from transformers import DistilBertConfig, DistilBertForSequenceClassification
    except ImportError as error:
        raise FedstageError(
            f"model = distilbert: needs the package transformers ({error}); install the extra "
            "text: uv sync --extra text"
        ) from None
    (length,) = shape
    if length > settings.positions:
        raise FedstageError(
            f"model.positions = {settings.positions}: the data has texts of {length} tokens"
        )
    config = DistilBertConfig(
        vocab_size=settings.vocabulary,
        max_position_embeddings=settings.positions,
        n_layers=settings.layers,
        n_heads=settings.heads,
        dim=settings.width,
        hidden_dim=settings.hidden,
        dropout=0.0,
        attention_dropout=0.0,
        seq_classif_dropout=0.0,
        num_labels=classes,
        pad_token_id=PADDING,
    )
    return TextClassifier(DistilBertForSequenceClassification(config))
