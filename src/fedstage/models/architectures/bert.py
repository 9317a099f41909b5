"""BERT with a classifier (Devlin et al. 2019); the layers are from `transformers`."""

from torch import nn

from fedstage.models.layers import PADDING
from fedstage.models.transformer import TextClassifier, package_for
from fedstage.settings.models import Bert


def network(settings: Bert, shape: tuple[int, ...], classes: int) -> nn.Module:
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
