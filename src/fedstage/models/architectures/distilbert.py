"""DistilBERT with a classifier (Sanh et al. 2019); the layers are from `transformers`."""

from torch import nn

from fedstage.models.layers import PADDING
from fedstage.models.transformer import TextClassifier, package_for
from fedstage.settings.models import DistilBert


def network(settings: DistilBert, shape: tuple[int, ...], classes: int) -> nn.Module:
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
