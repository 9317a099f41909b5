"""What clients and server exchange, and what they keep from round to round."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from fedstage.protocol.groups import has_batch_norm, models_of

if TYPE_CHECKING:
    from fedstage.settings.aggregation import SecureAggregation
    from fedstage.settings.recipes import Recipe

# --- what travels ---------------------------------------------------------------------------------


def exchanges_logits(recipe: Recipe) -> bool:
    """Whether clients learn from one another's logits and exchange no weights."""
    return recipe.local.exchanges == "logits"


def exchanges_features(recipe: Recipe) -> bool:
    """Whether a model on the server learns from clients' features, without exchange of weights."""
    return recipe.local.exchanges == "features"


def weights_travel(recipe: Recipe) -> bool:
    """Whether clients send and receive weights of models."""
    return recipe.local.exchanges == "weights"


def secure_of(recipe: Recipe) -> SecureAggregation:
    """Return the settings of secure aggregation of a recipe that uses it."""
    secure = recipe.aggregation.secure
    assert secure is not None, "the graph has these stages for such recipes"
    return secure


def caches_labels(recipe: Recipe) -> bool:
    """Whether labels made from clients' logits are kept from round to round (SCARLET)."""
    return exchanges_logits(recipe) and getattr(recipe.local, "cache", None) is not None


def receives_server_logits(recipe: Recipe) -> bool:
    """Whether clients that send logits learn from the server's model, not from one another."""
    return learns_from_server(recipe.local)


def learns_from_server(local: Any) -> bool:
    """Whether clients that send logits learn from the server's model, not from one another."""
    return local.exchanges == "logits" and getattr(local, "teacher", None) == "server"


def history(local: Any) -> int:
    """Return how many of the last global models, including its start, a client learns from."""
    return int(local.models) if local.learns_from_past and local.gamma else 0


def is_judged(local: Any) -> bool:
    """Whether the last global models count by their losses, which the server measures."""
    return history(local) > 0 and local.teacher == "vote"


def models_sent(local: Any, known: int) -> int:
    """Return how many models the server sends if its history has `known` models.

    If they vote, it sends all, else the last one, and the mean of any older ones.
    """
    if not history(local):
        return 1
    return max(1, known if local.teacher == "vote" else min(known, 2))


# --- what is kept from round to round -------------------------------------------------------------


@cache
def is_stale(recipe: Recipe) -> bool:
    """Whether participants may start from models that are older than the previous round's."""
    staleness = recipe.staleness
    if staleness.name == "cyclic":
        return any(staleness.delays)
    if staleness.name == "random":
        return any(staleness.probabilities[1:])
    return staleness.name != "none"


def averages_stale(recipe: Recipe) -> bool:
    """Whether an aggregation may include updates of participants that started from older models."""
    return is_stale(recipe) and not recipe.withdraw_stale


def takes_changes(recipe: Recipe) -> bool:
    """Whether an aggregation uses changes since the models from which participants started."""
    return recipe.aggregation.stale == "changes" and averages_stale(recipe)


def merges(model: Any) -> bool:
    """Whether the products of clients' matrices are added to the model's weights."""
    return any(not isinstance(part, str) and part.lora.merged for part in model.trainable or ())


def keeps_state(recipe: Recipe) -> bool:
    """Whether clients or the server keep state between rounds other than models."""
    return clients_keep_state(recipe) or optimises(recipe)


def clients_keep_state(recipe: Recipe) -> bool:
    """Whether participants read the previous round's state."""
    return recipe.local.keeps_state or keeps_parts(recipe) or keeps_changes(recipe)


def optimises(recipe: Recipe) -> bool:
    """Whether the server has an optimiser, whose moments it keeps."""
    return recipe.aggregation.server_optimizer.name != "average"


def keeps_changes(recipe: Recipe) -> bool:
    """Whether compression keeps residuals, and a record of which model each client has."""
    return recipe.compression.name == "stc"


def keeps_parts(recipe: Recipe) -> bool:
    """Whether clients keep parts of their models, or their running statistics."""
    return recipe.personal is not None or keeps_statistics(recipe)


def keeps_statistics(recipe: Recipe) -> bool:
    """Whether clients keep their own running statistics of batch normalisation."""
    kept = recipe.aggregation.batch_norm == "local"
    return kept and any(map(has_batch_norm, models_of(recipe)))
