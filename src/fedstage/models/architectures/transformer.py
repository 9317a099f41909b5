"""Networks with a classifier whose layers are from the package `transformers`: BERT, DistilBERT.

Devlin et al. 2019; Sanh et al. 2019.
"""

from typing import Any

import torch
from torch import nn

from fedstage.errors import FedstageError, how_to_install
from fedstage.models.layers import PADDING, attended
from fedstage.settings.models import Bert, DistilBert, Transformer


def network(settings: Bert | DistilBert, shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return the network that the settings are of."""
    if isinstance(settings, Bert):
        return bert(settings, shape, classes)
    return distilbert(settings, shape, classes)


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
            f"model = {settings.name}: needs the package transformers ({error}); "
            f"{how_to_install('text')}"
        ) from None
    (length,) = shape
    if length > settings.positions:
        raise FedstageError(
            f"model.positions = {settings.positions}: the data has texts of {length} tokens"
        )
    return transformers


def bert(settings: Bert, shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return BERT for texts of at most `shape` [L] tokens.

    The classifier follows the pooled first token, as published; all tokens are of the first
    segment.

    Raises
    ------
    FedstageError
        If `transformers` is not installed, or texts are longer than the model has positions.
    """
    package = package_for(settings, shape)
    config = package.BertConfig(
        vocab_size=settings.vocabulary,
        max_position_embeddings=settings.positions,
        num_hidden_layers=settings.layers,
        num_attention_heads=settings.heads,
        hidden_size=settings.width,
        intermediate_size=settings.hidden,
        hidden_dropout_prob=settings.dropout,
        attention_probs_dropout_prob=settings.dropout,
        num_labels=classes,
        pad_token_id=PADDING,
    )
    return TextClassifier(package.BertForSequenceClassification(config))


def distilbert(settings: DistilBert, shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return DistilBERT for texts of at most `shape` [L] tokens.

    Raises
    ------
    FedstageError
        If `transformers` is not installed, or texts are longer than the model has positions.
    """
    package = package_for(settings, shape)
    config = package.DistilBertConfig(
        vocab_size=settings.vocabulary,
        max_position_embeddings=settings.positions,
        n_layers=settings.layers,
        n_heads=settings.heads,
        dim=settings.width,
        hidden_dim=settings.hidden,
        dropout=settings.dropout,
        attention_dropout=settings.dropout,
        seq_classif_dropout=min(1.0, 2 * settings.dropout),
        num_labels=classes,
        pad_token_id=PADDING,
    )
    return TextClassifier(package.DistilBertForSequenceClassification(config))
