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

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from fedstage.plan import data_files, discriminators
from fedstage.plan.commands import always
from fedstage.plan.graph import File, Inputs, Stage
from fedstage.plan.inputs import (
    AggregationInputs,
    CachedLabelsInputs,
    DataFreeDistillationInputs,
    DistillationInputs,
    FeatureTrainingInputs,
    HeadTransferInputs,
    JudgedDistillationInputs,
    LabelDistillationInputs,
    LiveDistillationInputs,
    LocalTrainingInputs,
    LogitsInputs,
    SelectedLabelsInputs,
)
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
    exchanges_features,
    exchanges_logits,
    generates,
    goes_on,
    is_stale,
    keeps_state,
    receives_server_logits,
    shares_control,
    takes_changes,
    teaches_live,
)
from fedstage.settings.groups import client_groups, group_slots, model_of
from fedstage.settings.lines import Line, re_estimates
from fedstage.settings.server import has_factors, needs_validation
from fedstage.settings.teaching import teaching_of

#: So many rounds after the first distillation each teacher and student has reached all groups.
_SETTLED = 4


@cache
def _settles(config: Line) -> int | None:
    """Return the round after which rounds reach the same settings; None where some are stale."""
    return None if is_stale(config) else first_distillation(config) + _SETTLED


def _settled(config: Line, round: int, *rest: Any) -> tuple[Any, ...]:
    """Return a place of a round that reaches the same settings as this one: large plans need it."""
    last = _settles(config)
    return (round if last is None else min(round, last), *rest)


# --- local training -------------------------------------------------------------------------------


def _local_training(config: Line, round: int, group: int, slot: int) -> LocalTrainingInputs[str]:
    """Return what the participant in a slot of a group trains from."""
    base = base_round(config, round, slot)
    logits = received_logits(config, base)
    server = _received_server_model(config, base)
    history = _history(config, base, group)
    judged = history and config.local.judged
    validation = data_files.data_file(config.data, "server_validation")
    by_server = server and receives_server_logits(config)
    return LocalTrainingInputs(
        data=data_files.data_file(config.data, "train"),
        info=info(config),
        clients=data_files.clients_table(config),
        participation=data_files.participation_table(config, round),
        start=global_model(config, base, group),
        state=[*_states(config, base, group)],
        received_logits=[*logits],
        public=public_file(config) if logits or by_server else None,
        server_model=server,
        history=history,
        server_validation=validation if judged else None,
    )


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
    name="local_training",
    about="train participants of a round from their group's global model",
    folder=FOLDER,
    settled=_settled,
    outputs={"outputs": "round_{round:04d}/group_{group}/slot_{slot}.safetensors"},
    inputs=_local_training,
    place=("round", "group", "slot"),
    takes=("round", "group", "slot"),
    alike=_alike_slot,
    on_device=always,
    batches=("client",),
    several=True,
)


def updates(config: Line, round: int, group: int) -> list[File]:
    """Return the updates of a group's participants, in the order of their slots."""
    return [LOCAL_TRAINING(config, round, group, slot) for slot in group_slots(config, group)]


def _all_updates(config: Line, round: int) -> list[File]:
    return [file for group in client_groups(config) for file in updates(config, round, group)]


# --- aggregation ----------------------------------------------------------------------------------


def _aggregation(config: Line, round: int, group: int) -> AggregationInputs[str]:
    """Return what w_{t,k} is averaged from."""
    bases = (base_round(config, round, slot) for slot in group_slots(config, group))
    state = keeps_state(config) and round > 1
    public = re_estimates(config) or exchanges_logits(config)
    return AggregationInputs(
        info=info(config),
        start=global_model(config, round - 1, group),
        updates=[*updates(config, round, group)],
        bases=[global_model(config, t, group) for t in bases] if takes_changes(config) else [],
        state=AGGREGATION(config, round - 1, group, output="new_state") if state else None,
        public=public_file(config) if public else None,
    )


def _aggregated(config: Line) -> Iterable[str]:
    return ("output", "participants", *(["new_state"] if keeps_state(config) else []))


AGGREGATION = Stage(
    name="aggregation",
    about="average the updates of a group",
    folder=FOLDER,
    settled=_settled,
    outputs={
        "output": "round_{round:04d}/group_{group}/aggregated.safetensors",
        "participants": "round_{round:04d}/group_{group}/participants.parquet",
        "new_state": "round_{round:04d}/group_{group}/state.safetensors",
    },
    inputs=_aggregation,
    place=("round", "group"),
    made=_aggregated,
    temporary=("new_state",),
    on_device=re_estimates,
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


def _head_transfer(config: Line, round: int, group: int) -> HeadTransferInputs[str]:
    """Return a model, and those whose heads it takes: Fed-ET's transfer up, or down.

    The server's model takes those of all participants before it is distilled, the others its own.
    """
    if group in client_groups(config):
        return HeadTransferInputs(
            AGGREGATION(config, round, group), [global_model(config, round, 0)]
        )
    return HeadTransferInputs(
        global_model(config, round - 1, group), [*_all_updates(config, round)]
    )


HEAD_TRANSFER = Stage(
    name="head_transfer",
    about="give a model the mean of other models' heads",
    folder=FOLDER,
    settled=_settled,
    outputs={"output": "round_{round:04d}/group_{group}/with_head.safetensors"},
    inputs=_head_transfer,
    place=("round", "group"),
    takes=("round", "group"),
    reads=teaching,
    used=lambda config: bool(config.head_transfer),
)


def _feature_training(config: Line, round: int, group: int) -> FeatureTrainingInputs[str]:
    """Return what the server's model learns from."""
    return FeatureTrainingInputs(
        info=info(config),
        start=global_model(config, round - 1, group),
        updates=[*_all_updates(config, round)],
        data=data_files.data_file(config.data, "train"),
        clients=data_files.clients_table(config),
    )


FEATURE_TRAINING = Stage(
    name="feature_training",
    about="train the server's model on features of the participants' samples",
    folder=FOLDER,
    settled=_settled,
    outputs={"output": "round_{round:04d}/group_{group}/trained.safetensors"},
    inputs=_feature_training,
    place=("round", "group"),
    takes=("round", "group"),
    used=exchanges_features,
    on_device=always,
    batches=("server",),
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


def _logits(config: Line, round: int, group: int, members: str, images: str) -> LogitsInputs[str]:
    """Return what the logits of members of one kind, of a round and group, are computed from."""
    read = member_models(config, round, group, members)
    return LogitsInputs(
        models=[*read.models],
        aggregated=read.aggregated,
        start=read.start,
        server_model=read.server,
        data=data_files.samples_file(config, images),
        info=info(config),
        clients=data_files.clients_table(config) if images == "validation" else None,
    )


LOGITS = Stage(
    name="logits",
    about="compute the logits of ensemble members on a data set",
    folder=FOLDER,
    settled=_settled,
    outputs={"output": "round_{round:04d}/group_{group}/logits/{members}-{images}.safetensors"},
    inputs=_logits,
    place=("round", "group", "members", "images"),
    takes=("members",),
    on_device=always,
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
    return member_logits(config, round, teaching_of(config).ensemble, public_id(config))


def _cached_labels(config: Line, round: int, group: int) -> CachedLabelsInputs[str]:
    """Return what labels of public samples are made of."""
    return CachedLabelsInputs(
        [*teacher_logits(config, round)], _only(cached_labels(config, round - 1))
    )


def _only(files: Sequence[str]) -> str | None:
    """Return the only file, if there is one."""
    return files[0] if files else None


CACHED_LABELS = Stage(
    name="cached_labels",
    about="keep an ensemble's labels of public samples for later rounds",
    folder=FOLDER,
    settled=_settled,
    outputs={"output": "round_{round:04d}/group_{group}/cached_labels.safetensors"},
    inputs=_cached_labels,
    place=("round", "group"),
    takes=("round",),
    used=caches_labels,
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


def _validation(config: Line) -> str | None:
    """Return the server's labelled images, if students are scored on them."""
    scored = needs_validation(teaching_of(config).server)
    return data_files.data_file(config.data, "server_validation") if scored else None


def _distillation(config: Line, round: int, group: int) -> DistillationInputs[str]:
    """Return what a student of logits is distilled from."""
    return DistillationInputs(
        info=info(config),
        start=student_start(config, round, group),
        public=public_file(config),
        server_validation=_validation(config),
        logits=[*teacher_logits(config, round)],
        odds=_only(discriminators.odds_files(config)),
    )


def _label_distillation(config: Line, round: int, group: int) -> LabelDistillationInputs[str]:
    """Return what a student of kept labels is distilled from."""
    (labels,) = selected_labels(config, round) or cached_labels(config, round)
    start = student_start(config, round, group)
    return LabelDistillationInputs(
        info(config), start, public_file(config), _validation(config), labels
    )


def _live_distillation(config: Line, round: int, group: int) -> LiveDistillationInputs[str]:
    """Return what a student of the members themselves is distilled from."""
    return LiveDistillationInputs(
        info=info(config),
        start=student_start(config, round, group),
        public=public_file(config),
        server_validation=_validation(config),
        members=teacher_models(config, round),
        logits=[] if teaches_live(config) else [*teacher_logits(config, round)],
    )


def _judged_distillation(config: Line, round: int, group: int) -> JudgedDistillationInputs[str]:
    """Return what a student of the better clients is distilled from."""
    groups = client_groups(config)
    judged = (LOGITS(config, round, other, "clients", "server_validation") for other in groups)
    return JudgedDistillationInputs(
        info=info(config),
        start=student_start(config, round, group),
        public=public_file(config),
        server_validation=data_files.data_file(config.data, "server_validation"),
        logits=[*teacher_logits(config, round)],
        judged=[*judged],
        updates=[*updates(config, round, group)],
    )


def _data_free_distillation(
    config: Line, round: int, group: int
) -> DataFreeDistillationInputs[str]:
    """Return what a student of generated images is distilled from."""
    return DataFreeDistillationInputs(
        info=info(config),
        start=student_start(config, round, group),
        members=teacher_models(config, round),
        histogram=data_files.label_histogram(config),
        generator=_last_generator(config, round - 1, group),
    )


def student_start(config: Line, round: int, group: int) -> str:
    """Return w_{t,k}, or w*_{t-1,k} where trained models are teachers only."""
    if goes_on(config) and group in client_groups(config):
        return global_model(config, round - 1, group)
    return aggregated_model(config, round, group)


def teacher_models(config: Line, round: int) -> list[str]:
    """Return the models of the teacher's members."""
    ensemble = teaching_of(config).ensemble
    return [
        path
        for past in member_rounds(round, ensemble)
        for group in client_groups(config)
        for kind in member_kinds(ensemble)
        for path in member_models(config, past, group, kind)
    ]


def _last_generator(config: Line, last: int, group: int) -> File | None:
    """Return the generator as the last student up to a round has left it, if there was one."""
    made = (t for t in range(last, 0, -1) if is_distilled(config, t, group))
    stage = DATA_FREE_DISTILLATION
    return next((stage(config, t, group, output="new_generator") for t in made), None)


def _is_taught_by(config: Line) -> str:
    """Return the name of the stage that distils students of a configuration."""
    server = teaching_of(config).server
    if generates(config):
        return "data_free_distillation"
    if server.drop_worst != "none":
        return "judged_distillation"
    if caches_labels(config) or receives_server_logits(config):
        return "label_distillation"
    live = teaches_live(config) or has_factors(server)
    return "live_distillation" if live else "distillation"


def _distilling(name: str, about: str, inputs: Callable[..., Inputs], **outputs: str) -> Stage:
    """Declare a stage that makes w*_{t,k}; which one does is one choice of the configuration."""
    return Stage(
        name=name,
        about=about,
        folder=FOLDER,
        settled=_settled,
        outputs={"output": "round_{round:04d}/group_{group}/distilled.safetensors"} | outputs,
        inputs=inputs,
        place=("round", "group"),
        takes=("round", "group"),
        reads=teaching,
        used=lambda config: config.global_trainer is not None and _is_taught_by(config) == name,
        temporary=tuple(outputs),
        on_device=always,
        batches=("server",),
    )


DISTILLATION = _distilling(
    "distillation", "teach a group's model with an ensemble's logits", _distillation
)
LABEL_DISTILLATION = _distilling(
    "label_distillation", "teach a model with labels that are kept", _label_distillation
)
LIVE_DISTILLATION = _distilling(
    "live_distillation",
    "teach a group's model with members that see its images",
    _live_distillation,
)
JUDGED_DISTILLATION = _distilling(
    "judged_distillation",
    "teach a group's model with the logits of the better clients",
    _judged_distillation,
)
DATA_FREE_DISTILLATION = _distilling(
    "data_free_distillation",
    "teach a group's model on images that the server generates",
    _data_free_distillation,
    new_generator="round_{round:04d}/group_{group}/generator.safetensors",
)
#: The stages that make students, of which a configuration uses one.
DISTILLATIONS = {
    stage.name: stage
    for stage in (
        DISTILLATION,
        LABEL_DISTILLATION,
        LIVE_DISTILLATION,
        JUDGED_DISTILLATION,
        DATA_FREE_DISTILLATION,
    )
}


def distilled_model(config: Line, round: int, group: int) -> File:
    """Return w*_{t,k} of a student."""
    return DISTILLATIONS[_is_taught_by(config)](config, round, group)


def _selected_labels(config: Line, round: int, group: int) -> SelectedLabelsInputs[str]:
    """Return what the server's model selects its labels by."""
    return SelectedLabelsInputs(
        info=info(config),
        start=student_start(config, round, group),
        logits=[*teacher_logits(config, round)],
        public=public_file(config),
        before=_only(selected_labels(config, round - 1)),
    )


SELECTED_LABELS = Stage(
    name="selected_labels",
    about="select what the server's model learns of each public sample",
    folder=FOLDER,
    settled=_settled,
    outputs={"output": "round_{round:04d}/group_{group}/selected_labels.safetensors"},
    inputs=_selected_labels,
    place=("round", "group"),
    takes=("round",),
    reads=teaching,
    used=receives_server_logits,
    on_device=always,
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
        return distilled_model(config, round, group)
    if takes_features(config, group):
        return FEATURE_TRAINING(config, round, group)
    if takes_head(config, group):
        return HEAD_TRANSFER(config, round, group)
    return aggregated_model(config, round, group)
