"""A round of federated training: each stage, its files, and what they are made from.

One file because a round is a circle: what is trained is taught, and trained again in the next one.

Notation of FedSDD: round t = 1..T, group (global model) k = 0..K-1; w_{t,k} is the aggregated
model, w*_{t,k} the global model that round t + 1 starts from. A round consists of

1. local training: each participant trains w*_{t-1,k}, or what it receives in its place;
2. aggregation: the server averages a group's updates to w_{t,k};
3. logits: the members of the ensemble E_t predict public images;
4. distillation: E_t teaches students, which gives w*_{t,k}.

In its place, or beside it, the server's model may train on clients' features (FedGKT), and models
take heads from one another (Fed-ET). `global_model` tells which of these files is w*_{t,k}.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from fedstage.plan import data_files, discriminators
from fedstage.plan.graph import File, Files, Stage
from fedstage.plan.members import member_kinds, member_rounds, parse_sampled
from fedstage.plan.staleness import base_round
from fedstage.plan.taught import (
    first_distillation,
    is_distilled,
    takes_features,
    takes_head,
    was_taught,
)
from fedstage.plan.training_folder import FOLDER, info, public_file, public_id, teaching
from fedstage.settings.ensembles import EnsembleTrainer, OneByOne
from fedstage.settings.exchange import (
    caches_labels,
    clients_keep_state,
    exchanges_logits,
    generates,
    is_stale,
    keeps_state,
    receives_server_logits,
    shares_control,
    takes_changes,
    teaches_live,
)
from fedstage.settings.groups import client_groups, group_slots, model_of
from fedstage.settings.lines import Line, drops_worst, re_estimates
from fedstage.settings.server import has_factors, needs_validation

# --- local training -------------------------------------------------------------------------------


def _local_training(config: Line, round: int, group: int, slot: int) -> Files:
    """Return what the participant in a slot of a group trains from.

    Who starts from w*_{b,k} reads what was there after round b; in step, that is round t - 1.
    """
    base = base_round(config, round, slot)
    logits = received_logits(config, base)
    server = _received_server_model(config, base)
    history = _history(config, base, group)
    judged = history and config.local.judged
    validation = data_files.data_file(config.data, "server_validation")
    by_server = server and receives_server_logits(config)
    return {
        **info(config),
        "data": data_files.data_file(config.data, "train"),
        "clients": data_files.clients_table(config),
        "participation": data_files.participation_table(config, round),
        "start": global_model(config, base, group),
        "state": _states(config, base, group),
        "said": logits,
        "public": public_file(config) if logits or by_server else None,
        "server_model": server,
        "history": history,
        "server_validation": validation if judged else None,
    }


def _received_server_model(config: Line, round: int) -> str | None:
    """Return the server's model whose logits clients receive after a round, if any."""
    receives = takes_features(config, 0) or receives_server_logits(config)
    return global_model(config, round, 0) if receives and was_taught(config, round, 0) else None


def _states(config: Line, round: int, group: int) -> list[File]:
    """Return the states after a round that the participants of the next one read, if any.

    With shared control variates they are those of all groups, because a client may have been in any
    group before. Participants do not read state of the server alone.
    """
    if not clients_keep_state(config) or round == 0:
        return []
    groups = client_groups(config) if shares_control(config) else [group]
    return [AGGREGATION(config, round, other, output="new_state") for other in groups]


def _history(config: Line, base: int, group: int) -> list[str]:
    """Return the last global models up to round `base` that participants learn from, in order."""
    length = config.local.history
    rounds = range(max(1, base - length + 1), base + 1) if length else ()
    return [global_model(config, round, group) for round in rounds]


def _alike_slot(config: Line, round: int, group: int, slot: int) -> tuple[int, ...]:
    """Participants of a round that are in step read the same."""
    return (round, group, slot if is_stale(config) else group_slots(config, group)[0])


LOCAL_TRAINING = Stage(
    "local_training",
    FOLDER,
    {"outputs": "round_{round:04d}/group_{group}/slot_{slot}.safetensors"},
    _local_training,
    place=("round", "group", "slot"),
    alike=_alike_slot,
)


def updates(config: Line, round: int, group: int) -> list[File]:
    """Return the updates of a group's participants, in the order of their slots."""
    return [LOCAL_TRAINING(config, round, group, slot) for slot in group_slots(config, group)]


def _all_updates(config: Line, round: int) -> list[File]:
    return [file for group in client_groups(config) for file in updates(config, round, group)]


# --- aggregation ----------------------------------------------------------------------------------


def _aggregation(config: Line, round: int, group: int) -> Files:
    """Return what w_{t,k} is averaged from.

    The public images are for running statistics, or to count the logits that clients exchange.
    """
    bases = (base_round(config, round, slot) for slot in group_slots(config, group))
    state = keeps_state(config) and round > 1
    public = re_estimates(config) or exchanges_logits(config)
    return {
        **info(config),
        "start": global_model(config, round - 1, group),
        "updates": updates(config, round, group),
        "bases": [global_model(config, t, group) for t in bases] if takes_changes(config) else [],
        "state": AGGREGATION(config, round - 1, group, output="new_state") if state else None,
        "public": public_file(config) if public else None,
    }


def _aggregated(config: Line, round: int, group: int) -> Iterable[str]:
    return ("output", "participants", *(["new_state"] if keeps_state(config) else []))


AGGREGATION = Stage(
    "aggregation",
    FOLDER,
    {
        "output": "round_{round:04d}/group_{group}/aggregated.safetensors",
        "participants": "round_{round:04d}/group_{group}/participants.parquet",
        "new_state": "round_{round:04d}/group_{group}/state.safetensors",
    },
    _aggregation,
    place=("round", "group"),
    made=_aggregated,
)


def aggregated_model(config: Line, round: int, group: int) -> str:
    """Return w_{t,k}; the server's model has no participants, but may take their heads."""
    if group in client_groups(config):
        return AGGREGATION(config, round, group)
    if config.head_transfer:
        return HEAD_TRANSFER(config, round, group)
    # It is the last distilled one; before its first distillation the initial model.
    first = first_distillation(config)
    taught = (t for t in range(round - 1, first - 1, -1) if is_distilled(config, t, group))
    return global_model(config, next(taught, 0) if first else 0, group)


def participants_table(config: Line, round: int, group: int) -> File:
    """Return the group's participants of the round, with samples, loss and bytes."""
    return AGGREGATION(config, round, group, output="participants")


# --- the server's model ---------------------------------------------------------------------------


def _head_transfer(config: Line, round: int, group: int) -> Files:
    """Return a model, and those whose heads it takes: Fed-ET's transfer up, or down.

    The server's model takes those of all participants before it is distilled, the others its own.
    """
    if group in client_groups(config):
        heads = [global_model(config, round, 0)]
        return {"model": AGGREGATION(config, round, group), "heads": heads}
    return {"model": global_model(config, round - 1, group), "heads": _all_updates(config, round)}


HEAD_TRANSFER = Stage(
    "head_transfer",
    FOLDER,
    {"output": "round_{round:04d}/group_{group}/with_head.safetensors"},
    _head_transfer,
    place=("round", "group"),
    reads=teaching,
)


def _feature_training(config: Line, round: int, group: int) -> Files:
    """Return what the server's model learns from: all participants' models and samples (FedGKT).

    The features that a client would send are computed from these, where they are needed.
    """
    return {
        **info(config),
        "start": global_model(config, round - 1, group),
        "updates": _all_updates(config, round),
        "data": data_files.data_file(config.data, "train"),
        "clients": data_files.clients_table(config),
    }


FEATURE_TRAINING = Stage(
    "feature_training",
    FOLDER,
    {"output": "round_{round:04d}/group_{group}/trained.safetensors"},
    _feature_training,
    place=("round", "group"),
)


# --- ensembles ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MemberModels:
    """The models that logits of members are computed from."""

    models: tuple[str, ...]  # the members, or the models whose distribution they are drawn from
    aggregated: str | None = None  # w_{t,k}, for drawn members
    start: str | None = None  # the round's start, if the distribution is about it
    server: str | None = None  # the server's model, where it goes on from the members

    def __iter__(self) -> Iterator[str]:
        """Yield all files."""
        return filter(None, (*self.models, self.aggregated, self.start, self.server))


def _logits(config: Line, round: int, group: int, members: str, images: str) -> Files:
    """Return what the logits of members of one kind, of a round and group, are computed from."""
    read = member_models(config, round, group, members)
    return {
        **info(config),
        "models": read.models,
        "aggregated": read.aggregated,
        "start": read.start,
        "server_model": read.server,
        "data": data_files.samples_file(config, images),
        "clients": data_files.clients_table(config) if images == "validation" else None,
    }


LOGITS = Stage(
    "logits",
    FOLDER,
    {"output": "round_{round:04d}/group_{group}/logits/{members}-{images}.safetensors"},
    _logits,
    place=("round", "group", "members", "images"),
)


def member_models(config: Line, round: int, group: int, members: str) -> MemberModels:
    """Return the models that the logits of one kind of members are computed from."""
    aggregated = aggregated_model(config, round, group)
    if members == "aggregated":
        return MemberModels((aggregated,))
    models, drawn = tuple(updates(config, round, group)), parse_sampled(members)
    if drawn is None:
        server = global_model(config, round, 0) if members == "split" else None
        return MemberModels(models, server=server)
    start = global_model(config, round - 1, group) if drawn.variant == "as_released" else None
    return MemberModels(models, aggregated, start)


def member_logits(
    config: Line, round: int, ensemble: EnsembleTrainer | OneByOne, images: str
) -> list[File]:
    """Return the logits, on images of `samples_file`, of an ensemble's members after `round`."""
    return [
        LOGITS(config, past, group, kind, images)
        for past in member_rounds(round, ensemble)
        for group in client_groups(config)
        for kind in member_kinds(ensemble)
    ]


def teacher_logits(config: Line, round: int) -> list[File]:
    """Return the logits of the teacher E_t on public images."""
    assert config.ensemble is not None, "checked by Line: what is taught has an ensemble"
    return member_logits(config, round, config.ensemble, public_id(config))


def _cached_labels(config: Line, round: int, group: int) -> Files:
    """Return what labels of public samples are made of: this round's logits, and those before."""
    before = _only(cached_labels(config, round - 1))
    return {"logits": teacher_logits(config, round), "before": before}


def _only(files: Sequence[str]) -> str | None:
    """Return the only file, if there is one."""
    return files[0] if files else None


CACHED_LABELS = Stage(
    "cached_labels",
    FOLDER,
    {"output": "round_{round:04d}/group_{group}/cached_labels.safetensors"},
    _cached_labels,
    place=("round", "group"),
)


def cached_labels(config: Line, round: int) -> list[File]:
    """Return the labels of public samples that are kept after a round, if there is a cache.

    They follow from the logits of all groups, and lie with those of the last.
    """
    kept = caches_labels(config) and round > 0
    return [CACHED_LABELS(config, round, client_groups(config)[-1])] if kept else []


def received_logits(config: Line, round: int) -> list[File]:
    """Return the logits, or labels made of them, that clients receive after a round, if any."""
    if not exchanges_logits(config) or receives_server_logits(config) or round == 0:
        return []
    return cached_labels(config, round) or teacher_logits(config, round)


# --- students -------------------------------------------------------------------------------------


def _distillation(config: Line, round: int, group: int) -> Files:
    """Return what w*_{t,k} is distilled from."""
    assert config.server is not None, "checked by Line: a global trainer has server settings"
    validation = data_files.data_file(config.data, "server_validation")
    generated, worst = generates(config), drops_worst(config)
    return {
        **info(config),
        "start": student_start(config, round, group),
        "logits": student_logits(config, round),
        "members": teacher_models(config, round),
        "judged": _judging_logits(config, round) if worst else [],
        "updates": updates(config, round, group) if worst else [],
        "public": None if generated else public_file(config),
        "odds": _only(discriminators.odds_files(config)),
        "histogram": data_files.label_histogram(config) if generated else None,
        "generator": _last_generator(config, round - 1, group) if generated else None,
        "server_validation": validation if needs_validation(config.server) else None,
    }


def student_start(config: Line, round: int, group: int) -> str:
    """Return w_{t,k}, or w*_{t-1,k} where trained models are teachers only."""
    trainer = config.global_trainer
    assert trainer is not None, "only global trainers have students"
    if trainer.starts_from == "previous" and group in client_groups(config):
        return global_model(config, round - 1, group)
    return aggregated_model(config, round, group)


def student_logits(config: Line, round: int) -> list[File]:
    """Return the logits that students of a round learn from, or labels that are made of them."""
    if teaches_live(config):
        return []
    kept = selected_labels(config, round) or cached_labels(config, round)
    return kept or teacher_logits(config, round)


def teacher_models(config: Line, round: int) -> list[str]:
    """Return the models of the teacher's members, if distillations read them themselves."""
    if config.global_trainer is None or config.server is None or config.ensemble is None:
        return []
    if not (teaches_live(config) or has_factors(config.server)):
        return []
    return [
        path
        for past in member_rounds(round, config.ensemble)
        for group in client_groups(config)
        for kind in member_kinds(config.ensemble)
        for path in member_models(config, past, group, kind)
    ]


def _judging_logits(config: Line, round: int) -> list[File]:
    """Return the logits by which the worst clients are left out."""
    groups = client_groups(config)
    return [LOGITS(config, round, group, "clients", "server_validation") for group in groups]


def _last_generator(config: Line, last: int, group: int) -> File | None:
    """Return the generator as the last student up to a round has left it, if there was one."""
    made = (t for t in range(last, 0, -1) if is_distilled(config, t, group))
    return next((DISTILLATION(config, t, group, output="new_generator") for t in made), None)


def _distilled(config: Line, round: int, group: int) -> Iterable[str]:
    return ("output", *(["new_generator"] if generates(config) else []))


DISTILLATION = Stage(
    "distillation",
    FOLDER,
    {
        "output": "round_{round:04d}/group_{group}/distilled.safetensors",
        "new_generator": "round_{round:04d}/group_{group}/generator.safetensors",
    },
    _distillation,
    place=("round", "group"),
    reads=teaching,
    made=_distilled,
)


def _selected_labels(config: Line, round: int, group: int) -> Files:
    """Return what the server's model selects by: itself, clients' logits, and what it had kept."""
    return {
        **info(config),
        "start": student_start(config, round, group),
        "logits": teacher_logits(config, round),
        "public": public_file(config),
        "before": _only(selected_labels(config, round - 1)),
    }


SELECTED_LABELS = Stage(
    "selected_labels",
    FOLDER,
    {"output": "round_{round:04d}/group_{group}/selected_labels.safetensors"},
    _selected_labels,
    place=("round", "group"),
    reads=teaching,
)


def selected_labels(config: Line, round: int) -> list[File]:
    """Return what the server's model is to learn after a round, where it selects that itself."""
    selects = receives_server_logits(config) and is_distilled(config, round, 0)
    return [SELECTED_LABELS(config, round, 0)] if selects else []


# --- the global model -----------------------------------------------------------------------------

#: A global model is found by way of those this many rounds apart, so that no call is deep.
_STEP = 50


@cache
def global_model(config: Line, round: int, group: int) -> str:
    """Return w*_{t,k}; round 0 is the run's start, by default the initial model."""
    if round > _STEP:
        global_model(config, (round - 1) // _STEP * _STEP, group)
    if round == 0:
        if config.start and (config.start_of == "all" or group not in client_groups(config)):
            return config.start
        model = model_of(config, group)
        return data_files.initial_model(config.data, model, config.seed, group)
    if is_distilled(config, round, group):
        return DISTILLATION(config, round, group)
    if takes_features(config, group):
        return FEATURE_TRAINING(config, round, group)
    if takes_head(config, group):
        return HEAD_TRANSFER(config, round, group)
    return aggregated_model(config, round, group)
