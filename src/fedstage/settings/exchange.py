"""What clients and server exchange, learn from and keep in rounds, by the settings of a run."""

from functools import cache

from fedstage.settings.aggregation import SecureAggregation
from fedstage.settings.groups import models_of, shortest
from fedstage.settings.local_training import Digest
from fedstage.settings.models import has_batch_norm
from fedstage.settings.recipes import Recipe
from fedstage.settings.server import has_live_teachers

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
    return isinstance(recipe.local, Digest) and recipe.local.cache is not None


def receives_server_logits(recipe: Recipe) -> bool:
    """Whether clients that send logits learn from the server's model, not from one another."""
    return recipe.local.learns_from_server


# --- what learns from an ensemble -----------------------------------------------------------------


@cache
def students(recipe: Recipe) -> tuple[int, ...]:
    """Return the groups whose global models are distilled."""
    trainer = recipe.global_trainer
    if trainer is None:
        return ()
    if trainer.name == "basic":
        return tuple(range(recipe.global_models))
    if trainer.main == "first":
        return (0,)
    models = models_of(recipe)
    return tuple(sorted({models.index(model) for model in models}))


def goes_on(recipe: Recipe) -> bool:
    """Whether students start from the global models of the previous round."""
    trainer = recipe.global_trainer
    return trainer is not None and trainer.starts_from == "previous"


def learns(recipe: Recipe) -> bool:
    """Whether anything learns from an ensemble in the rounds."""
    return recipe.teaching is not None


def generates(recipe: Recipe) -> bool:
    """Whether students learn from images that the server generates instead of public ones."""
    return recipe.global_trainer is not None and recipe.generator is not None


def teaches_public(recipe: Recipe) -> bool:
    """Whether anything learns from an ensemble on public samples in the rounds."""
    return learns(recipe) and not generates(recipe)


def teaches_live(recipe: Recipe) -> bool:
    """Whether teachers' models compute logits of the images that students see."""
    taught = recipe.teaching
    return taught is not None and (has_live_teachers(taught.server) or generates(recipe))


# --- what is kept from round to round -------------------------------------------------------------


@cache
def is_stale(recipe: Recipe) -> bool:
    """Whether participants may start from models that are older than the previous round's."""
    return shortest(recipe.staleness).name != "none"


def averages_stale(recipe: Recipe) -> bool:
    """Whether an aggregation may include updates of participants that started from older models."""
    return is_stale(recipe) and not recipe.withdraw_stale


def takes_changes(recipe: Recipe) -> bool:
    """Whether an aggregation uses changes since the models from which participants started."""
    return recipe.aggregation.stale == "changes" and averages_stale(recipe)


def keeps_state(recipe: Recipe) -> bool:
    """Whether clients or the server keep state between rounds other than models."""
    return clients_keep_state(recipe) or optimises(recipe)


def clients_keep_state(recipe: Recipe) -> bool:
    """Whether participants read the previous round's state."""
    return recipe.local.keeps_state or keeps_statistics(recipe) or keeps_changes(recipe)


def optimises(recipe: Recipe) -> bool:
    """Whether the server has an optimiser, whose moments it keeps."""
    return recipe.aggregation.server_optimizer.name != "average"


def keeps_changes(recipe: Recipe) -> bool:
    """Whether compression keeps residuals, and a record of which model each client has."""
    return recipe.compression.name == "stc"


def keeps_statistics(recipe: Recipe) -> bool:
    """Whether clients keep their own running statistics of batch normalisation."""
    kept = recipe.aggregation.batch_norm == "local"
    return kept and any(map(has_batch_norm, models_of(recipe)))
