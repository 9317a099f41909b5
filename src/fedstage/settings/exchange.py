"""What clients and server exchange in rounds, learn from, and keep, by the settings of a run."""

from functools import cache

from fedstage.settings.groups import client_groups, models_of
from fedstage.settings.lines import Line
from fedstage.settings.local_training import Digest
from fedstage.settings.models import has_batch_norm
from fedstage.settings.server import has_live_teachers
from fedstage.settings.staleness import shortest

# --- what travels ---------------------------------------------------------------------------------


def exchanges_logits(config: Line) -> bool:
    """Whether clients learn from one another's logits, and no weights travel."""
    return config.local.exchanges == "logits"


def exchanges_features(config: Line) -> bool:
    """Whether a model on the server learns from features of clients' samples; no weights travel."""
    return config.local.exchanges == "features"


def weights_travel(config: Line) -> bool:
    """Whether clients send and receive weights of models."""
    return not (exchanges_logits(config) or exchanges_features(config))


def caches_labels(config: Line) -> bool:
    """Whether labels made of clients' logits are kept from round to round (SCARLET)."""
    return isinstance(config.local, Digest) and config.local.cache is not None


def receives_server_logits(config: Line) -> bool:
    """Whether clients that send logits learn from the server's model, not from one another."""
    return isinstance(config.local, Digest) and config.local.teacher == "server"


# --- what learns from an ensemble -----------------------------------------------------------------


@cache
def students(config: Line) -> tuple[int, ...]:
    """Return the groups whose global models are distilled."""
    trainer = config.global_trainer
    if trainer is None:
        return ()
    if trainer.name == "basic":
        return tuple(range(config.global_models))
    if trainer.main == "first":
        return (0,)
    models = models_of(config)
    return tuple(sorted({models.index(model) for model in models}))


def goes_on(config: Line) -> bool:
    """Whether students start from the global models of the round before."""
    trainer = config.global_trainer
    return trainer is not None and trainer.starts_from == "previous"


def learns(config: Line) -> bool:
    """Whether something learns in the rounds from an ensemble."""
    return config.teaching is not None


def generates(config: Line) -> bool:
    """Whether students learn from images that the server generates, and from no public ones."""
    return config.global_trainer is not None and config.generator is not None


def teaches_public(config: Line) -> bool:
    """Whether something learns in the rounds from an ensemble on public samples."""
    return learns(config) and not generates(config)


def teaches_live(config: Line) -> bool:
    """Whether teachers' models compute logits of the images that students see."""
    taught = config.teaching
    return taught is not None and (has_live_teachers(taught.server) or generates(config))


# --- what is kept from round to round -------------------------------------------------------------


def shares_control(config: Line) -> bool:
    """Whether a round reads the control variates that all groups sent in the previous round."""
    local = config.local
    shared = local.name == "scaffold" and local.control == "shared"
    return shared and len(client_groups(config)) > 1


@cache
def is_stale(config: Line) -> bool:
    """Whether participants may start from models that are older than the last round's."""
    return shortest(config.staleness).name != "none"


def averages_stale(config: Line) -> bool:
    """Whether an aggregation may have updates of participants that started from older models."""
    return is_stale(config) and not config.withdraw_stale


def takes_changes(config: Line) -> bool:
    """Whether an aggregation takes changes since the models that participants started from."""
    return config.aggregation.stale == "changes" and averages_stale(config)


def keeps_state(config: Line) -> bool:
    """Whether clients or the server keep state between rounds beside the model."""
    return clients_keep_state(config) or optimises(config) or keeps_changes(config)


def clients_keep_state(config: Line) -> bool:
    """Whether participants read the previous round's state."""
    kept = config.compression.name == "stc" and config.compression.residuals
    return config.local.keeps_state or keeps_statistics(config) or kept


def optimises(config: Line) -> bool:
    """Whether the server has an optimiser, whose moments it keeps."""
    return config.aggregation.server_optimizer.name != "average"


def keeps_changes(config: Line) -> bool:
    """Whether compression keeps residuals, or which model each client has."""
    compression = config.compression
    return compression.name == "stc" and (compression.residuals or compression.downstream)


def keeps_statistics(config: Line) -> bool:
    """Whether clients keep their own running statistics of batch normalisation."""
    kept = config.aggregation.batch_norm == "local"
    return kept and any(map(has_batch_norm, models_of(config)))
