"""A round of federated training: each stage, its files, and what they are made from.

One file because a round is a circle: models are trained, taught, and trained again in the next.

Notation of FedSDD: round t = 1..T, group (global model) k = 0..K-1; w_{t,k} is the aggregated
model, w*_{t,k} the global model that round t + 1 starts from. A round consists of

1. local training: each participant trains w*_{t-1,k}, or what it receives in its place;
2. aggregation: the server averages a group's updates to w_{t,k};
3. logits: the members of the ensemble E_t predict public images;
4. distillation: E_t teaches students, which gives w*_{t,k}.

In its place, or in addition, the server's model may train on clients' features (FedGKT), and models
take heads from one another (Fed-ET). `global_model` returns the file of w*_{t,k}.
"""

from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import product
from typing import Any

from fedstage.plan import data_files, training_folder
from fedstage.plan.data_files import data_file, info, public_id
from fedstage.plan.graph import File, Stage, listed, never, reach
from fedstage.plan.inputs import (
    AdvertiseInputs,
    AggregationInputs,
    CachedLabelsInputs,
    ClientStateInputs,
    DataFreeDistillationInputs,
    DistillationInputs,
    FeatureTrainingInputs,
    HeadSharingInputs,
    Inputs,
    JudgedDistillationInputs,
    LabelDistillationInputs,
    LocalTrainingInputs,
    LogitsInputs,
    MaskedInputInputs,
    SelectedLabelsInputs,
    ShareInputs,
    UnmaskInputs,
)
from fedstage.plan.members import member_kinds, parse_sampled
from fedstage.plan.training_folder import FOLDER, public_file, teaching
from fedstage.protocol.exchange import (
    caches_labels,
    clients_keep_state,
    exchanges_features,
    exchanges_logits,
    history,
    is_judged,
    is_stale,
    keeps_state,
    receives_server_logits,
    takes_changes,
)
from fedstage.protocol.groups import client_groups, group_participants, model_of
from fedstage.protocol.rounds import (
    base_round,
    first_distillation,
    is_distilled,
    member_rounds,
    takes_features,
    takes_head,
    was_taught,
)
from fedstage.protocol.server import has_factors, needs_validation, teaches_live
from fedstage.protocol.teaching import generates, goes_on, re_estimates, students, teaching_of
from fedstage.settings.ensembles import EnsembleTrainer, OneByOne
from fedstage.settings.recipes import Recipe

#: Rounds after the first distillation until each teacher and student has reached all groups.
_SETTLED = 4


@cache
def _settles(recipe: Recipe) -> int | None:
    """Return the round after which rounds reach the same settings; None where some are stale."""
    return None if is_stale(recipe) else first_distillation(recipe) + _SETTLED


def _settled(recipe: Recipe, round_: int, *rest: Any) -> tuple[Any, ...]:
    """Return a place of a round that reaches the same settings as this one: large plans need it."""
    last = _settles(recipe)
    return (round_ if last is None else min(round_, last), *rest)


_OF_GROUP = "round_{round:04d}/group_{group}/"
#: A stage of rounds, with the folder of a run.
_of_rounds = partial(Stage, folder=FOLDER, settled=_settled, below=_OF_GROUP)

# --- local training -------------------------------------------------------------------------------


def _alike_participant(
    recipe: Recipe, round_: int, group: int, participant: int
) -> tuple[int, ...]:
    """Return equal keys for participants that read the same: a group's, unless any is stale."""
    first = participant if is_stale(recipe) else group_participants(recipe, group)[0]
    return (round_, group, first)


@partial(
    _of_rounds,
    outputs={"outputs": "participant_{participant}.safetensors"},
    alike=_alike_participant,
    several=True,
    private=True,
)
def local_training(
    recipe: Recipe, round_: int, group: int, participant: int
) -> LocalTrainingInputs[str]:
    """Train participants of a round from their group's global model."""
    base = base_round(recipe, round_, participant)
    logits = received_logits(recipe, base)
    server = _received_server_model(recipe, base)
    past = _past_models(recipe, base, group)
    judged = past and is_judged(recipe.local)
    validation = data_file(recipe.data, "server_validation")
    by_server = server and receives_server_logits(recipe)
    return LocalTrainingInputs(
        **data_files.clients_samples(recipe),
        participation=data_files.participation_table(recipe, round_),
        start=global_model(recipe, base, group),
        state=[*_states(recipe, base, group)],
        received_logits=[*logits],
        public=public_file(recipe) if logits or by_server else None,
        server_model=server,
        history=past,
        server_validation=validation if judged else None,
    )


def _received_server_model(recipe: Recipe, round_: int) -> str | None:
    """Return the server's model whose logits clients receive after a round, if any."""
    receives = takes_features(recipe, 0) or receives_server_logits(recipe)
    return global_model(recipe, round_, 0) if receives and was_taught(recipe, round_, 0) else None


def _states(recipe: Recipe, round_: int, group: int) -> list[File]:
    """Return the states after a round that the participants of the next one read, if any.

    Participants do not read state of the server alone.
    """
    if not clients_keep_state(recipe) or round_ == 0:
        return []
    states = [aggregation(recipe, round_, group, output="new_state")]
    if recipe.aggregation.secure:
        states.append(client_state(recipe, round_, group))
    return states


def _past_models(recipe: Recipe, base: int, group: int) -> list[str]:
    """Return the last global models up to round `base` that participants learn from, in order."""
    length = history(recipe.local)
    rounds = range(max(1, base - length + 1), base + 1) if length else ()
    return [global_model(recipe, round_, group) for round_ in rounds]


def _of_all(recipe: Recipe, round_: int, group: int, stage: Stage, output: str) -> list[str]:
    """Return a file of each participant of a group, in the order of their indices."""
    participants = group_participants(recipe, group)
    return [stage(recipe, round_, group, one, output=output) for one in participants]


def updates(recipe: Recipe, round_: int, group: int) -> list[str]:
    """Return the updates of a group's participants."""
    return _of_all(recipe, round_, group, local_training, "outputs")


def _all_updates(recipe: Recipe, round_: int) -> list[str]:
    return [file for group in client_groups(recipe) for file in updates(recipe, round_, group)]


def _other_updates(recipe: Recipe, round_: int, group: int) -> list[str]:
    own = updates(recipe, round_, group)
    return [file for file in _all_updates(recipe, round_) if file not in own]


# --- secure aggregation ---------------------------------------------------------------------------


#: A step of secure aggregation that each participant takes.
_step = partial(
    _of_rounds,
    below=_OF_GROUP + "secure/participant_{participant}_",
    module="secure_aggregation",
    on_device=never,
    private=False,
    used=lambda config: config.aggregation.secure is not None,
)


@partial(
    _step,
    outputs={"public": "public_keys.safetensors", "private": "private.safetensors"},
    # A secret belongs to a single update: both lie in one folder and are made by one segment. It
    # must not stay, and does not, as the participant's other steps read it.
    reads=lambda recipe, *place: reach(local_training, recipe, place),
    temporary=("private",),
)
def advertise(recipe: Recipe, round_: int, group: int, participant: int) -> AdvertiseInputs[str]:
    """Draw a participant's keys for secure aggregation."""
    return AdvertiseInputs(data_files.participation_table(recipe, round_))


@partial(_step, outputs={"shares": "shares.safetensors"})
def share(recipe: Recipe, round_: int, group: int, participant: int) -> ShareInputs[str]:
    """Share a participant's secrets with the others, encrypted."""
    place = (recipe, round_, group)
    return ShareInputs(
        private=advertise(*place, participant, output="private"),
        public_keys=_of_all(*place, advertise, "public"),
    )


@partial(_step, outputs={"vector": "vector.safetensors", "receipt": "receipt.safetensors"})
def masked_input(
    recipe: Recipe, round_: int, group: int, participant: int
) -> MaskedInputInputs[str]:
    """Hide a participant's update under masks that vanish from the sum."""
    place = (recipe, round_, group)
    return MaskedInputInputs(
        info=info(recipe),
        own_update=local_training(*place, participant),
        start=global_model(recipe, round_ - 1, group),
        shares=_of_all(*place, share, "shares"),
        **vars(share.inputs(*place, participant)),
    )


@partial(_step, outputs={"revealed": "revealed.safetensors"})
def unmask(recipe: Recipe, round_: int, group: int, participant: int) -> UnmaskInputs[str]:
    """Reveal a participant's shares of masks that have not vanished."""
    place = (recipe, round_, group)
    return UnmaskInputs(
        shares=_of_all(*place, share, "shares"),
        receipts=_of_all(*place, masked_input, "receipt"),
        **vars(share.inputs(*place, participant)),
    )


#: One file for all clients of a group, which no stage of the server reads.
@partial(
    _of_rounds,
    outputs={"output": "secure/client_states.safetensors"},
    module="secure_aggregation",
    private=True,
    used=lambda config: config.aggregation.secure is not None and clients_keep_state(config),
    temporary=("output",),
    on_device=never,
)
def client_state(recipe: Recipe, round_: int, group: int) -> ClientStateInputs[str]:
    """Keep what participants go on from and the server does not get."""
    place = (recipe, round_, group)
    return ClientStateInputs(
        state=client_state(recipe, round_ - 1, group) if round_ > 1 else None,
        own_updates=updates(*place),
        receipts=_of_all(*place, masked_input, "receipt"),
    )


#: What participants do in secure aggregation.
SECURE = (advertise, share, masked_input, unmask, client_state)


# --- aggregation ----------------------------------------------------------------------------------


@partial(
    _of_rounds,
    outputs={
        "output": "aggregated.safetensors",
        "participants": "participants.parquet",
        "new_state": "state.safetensors",
    },
    made=lambda recipe: ("output", "participants", *(["new_state"] if keeps_state(recipe) else [])),
    temporary=("new_state",),
    on_device=re_estimates,
)
def aggregation(recipe: Recipe, round_: int, group: int) -> AggregationInputs[str]:
    """Average the updates of a group."""
    bases = (
        base_round(recipe, round_, participant) for participant in group_participants(recipe, group)
    )
    state = keeps_state(recipe) and round_ > 1
    public = re_estimates(recipe) or exchanges_logits(recipe)
    secure, place = recipe.aggregation.secure, (recipe, round_, group)
    return AggregationInputs(
        info=info(recipe),
        start=global_model(recipe, round_ - 1, group),
        updates=[] if secure else updates(*place),
        others=_other_updates(*place) if recipe.local.shares_state else [],
        public_keys=_of_all(*place, advertise, "public") if secure else [],
        vectors=_of_all(*place, masked_input, "vector") if secure else [],
        revealed=_of_all(*place, unmask, "revealed") if secure else [],
        bases=[global_model(recipe, t, group) for t in bases] if takes_changes(recipe) else [],
        state=aggregation(recipe, round_ - 1, group, output="new_state") if state else None,
        public=public_file(recipe) if public else None,
    )


def aggregated_model(recipe: Recipe, round_: int, group: int) -> str:
    """Return w_{t,k}; the server's model has no participants, but may take their heads."""
    if group in client_groups(recipe):
        return aggregation(recipe, round_, group)
    if recipe.head_sharing:
        return head_sharing(recipe, round_, group)
    # It is the last distilled model, or the initial model before its first distillation.
    first = first_distillation(recipe)
    taught = (t for t in range(round_ - 1, first - 1, -1) if is_distilled(recipe, t, group))
    return global_model(recipe, next(taught, 0) if first else 0, group)


def participants_table(recipe: Recipe, round_: int, group: int) -> File:
    """Return the group's participants of the round, with samples, loss and bytes."""
    return aggregation(recipe, round_, group, output="participants")


# --- the server's model ---------------------------------------------------------------------------


@partial(
    _of_rounds,
    outputs={"output": "with_head.safetensors"},
    module="distillation",
    on_device=never,
    reads=teaching,
    used=lambda config: bool(config.head_sharing),
)
def head_sharing(recipe: Recipe, round_: int, group: int) -> HeadSharingInputs[str]:
    """Give a model the mean of other models' heads.

    The server's model takes the heads of all participants before it is distilled; the global models
    of groups take the server's head afterwards.
    """
    if group in client_groups(recipe):
        return HeadSharingInputs(
            aggregation(recipe, round_, group), [global_model(recipe, round_, 0)]
        )
    return HeadSharingInputs(global_model(recipe, round_ - 1, group), _all_updates(recipe, round_))


@partial(
    _of_rounds,
    outputs={"output": "trained.safetensors"},
    module="distillation",
    used=exchanges_features,
)
def feature_training(recipe: Recipe, round_: int, group: int) -> FeatureTrainingInputs[str]:
    """Train the server's model on features of the participants' samples."""
    return FeatureTrainingInputs(
        **data_files.clients_samples(recipe),
        start=global_model(recipe, round_ - 1, group),
        updates=_all_updates(recipe, round_),
    )


# --- ensembles ------------------------------------------------------------------------------------


@partial(
    _of_rounds,
    outputs={"output": "logits/{members}-{images}.safetensors"},
    module="distillation",
)
def logits(recipe: Recipe, round_: int, group: int, members: str, images: str) -> LogitsInputs[str]:
    """Compute the logits of ensemble members on a data set."""
    aggregated, drawn = aggregated_model(recipe, round_, group), parse_sampled(members)
    about_start = drawn is not None and drawn.variant == "as_released"
    return LogitsInputs(
        models=[aggregated] if members == "aggregated" else updates(recipe, round_, group),
        aggregated=aggregated if drawn or members == "own" else None,
        start=global_model(recipe, round_ - 1, group) if about_start else None,
        server_model=global_model(recipe, round_, 0) if members == "split" else None,
        **data_files.images_of(recipe, images),
    )


def member_models(recipe: Recipe, round_: int, group: int, members: str) -> list[str]:
    """Return the models that the logits of one kind of members are computed from."""
    read = logits.job(recipe, round_, group, members, "test").inputs
    options = ("models", "aggregated", "start", "server_model")
    return [file for option in options for file in listed(read[option])]


def member_places(
    recipe: Recipe, round_: int, ensemble: EnsembleTrainer | OneByOne
) -> Iterator[tuple[int, int, str]]:
    """Return the rounds, groups and kinds of an ensemble's members after `round_`."""
    return product(member_rounds(round_, ensemble), client_groups(recipe), member_kinds(ensemble))


def member_logits(
    recipe: Recipe, round_: int, ensemble: EnsembleTrainer | OneByOne, images: str
) -> list[File]:
    """Return the logits, on images of `samples_file`, of an ensemble's members after `round_`."""
    return [logits(recipe, *place, images) for place in member_places(recipe, round_, ensemble)]


def teacher_logits(recipe: Recipe, round_: int) -> list[File]:
    """Return the logits of the teacher E_t on public images."""
    return member_logits(recipe, round_, teaching_of(recipe).ensemble, public_id(recipe))


@partial(
    _of_rounds,
    outputs={"output": "cached_labels.safetensors"},
    module="distillation",
    on_device=never,
    used=caches_labels,
)
def cached_labels(recipe: Recipe, round_: int, group: int) -> CachedLabelsInputs[str]:
    """Keep an ensemble's labels of public samples for later rounds."""
    return CachedLabelsInputs([*teacher_logits(recipe, round_)], kept_labels(recipe, round_ - 1))


def kept_labels(recipe: Recipe, round_: int) -> File | None:
    """Return the labels of public samples that are kept after a round, if there is a cache.

    They follow from the logits of all groups, and are stored with the last group's.
    """
    kept = caches_labels(recipe) and round_ > 0
    return cached_labels(recipe, round_, client_groups(recipe)[-1]) if kept else None


def received_logits(recipe: Recipe, round_: int) -> list[File]:
    """Return the logits, or labels made of them, that clients receive after a round, if any."""
    if not exchanges_logits(recipe) or receives_server_logits(recipe) or round_ == 0:
        return []
    kept = kept_labels(recipe, round_)
    return [kept] if kept else teacher_logits(recipe, round_)


# --- students -------------------------------------------------------------------------------------


def _student(recipe: Recipe, round_: int, group: int) -> dict[str, Any]:
    """Return the files of `StudentInputs`."""
    start = student_start(recipe, round_, group)
    files = {"info": info(recipe), "start": start, "public": public_file(recipe)}
    return files | data_files.possibly_public(recipe)


def _distilled(recipe: Recipe, round_: int, group: int) -> dict[str, Any]:
    """Return the files of `DistilledInputs`."""
    scored = needs_validation(teaching_of(recipe).server)
    validation = data_file(recipe.data, "server_validation") if scored else None
    return _student(recipe, round_, group) | {"server_validation": validation}


def _taught(recipe: Recipe, round_: int, group: int) -> dict[str, Any]:
    """Return the files of `DistilledInputs`, and the models or logits of the teacher's members."""
    live = teaches_live(recipe)
    given = live or has_factors(teaching_of(recipe).server)
    return _distilled(recipe, round_, group) | {
        "members": teacher_models(recipe, round_) if given else [],
        "logits": [] if live else [*teacher_logits(recipe, round_)],
    }


def _distilling(**outputs: str) -> Callable[[Callable[..., Inputs[str]]], Stage]:
    """Declare a stage that makes w*_{t,k}; which one does is one choice of the configuration."""

    def declare(inputs: Callable[..., Inputs[str]]) -> Stage:
        return _of_rounds(
            inputs,
            outputs={"output": "distilled.safetensors"} | outputs,
            module="distillation",
            reads=teaching,
            used=lambda config: (
                config.global_trainer is not None and _teacher_of(config).inputs is inputs
            ),
            temporary=tuple(outputs),
        )

    return declare


@_distilling()
def distillation(recipe: Recipe, round_: int, group: int) -> DistillationInputs[str]:
    """Teach a group's model with an ensemble."""
    return DistillationInputs(
        **_taught(recipe, round_, group),
        odds=next(iter(training_folder.odds_files(recipe)), None),
    )


@_distilling()
def label_distillation(recipe: Recipe, round_: int, group: int) -> LabelDistillationInputs[str]:
    """Teach a model with labels that are kept."""
    labels = chosen_labels(recipe, round_) or kept_labels(recipe, round_)
    assert labels is not None, "`used` says so"
    return LabelDistillationInputs(**_distilled(recipe, round_, group), labels=labels)


@_distilling()
def judged_distillation(recipe: Recipe, round_: int, group: int) -> JudgedDistillationInputs[str]:
    """Teach a group's model with the logits of the better clients."""
    groups = client_groups(recipe)
    judged = (logits(recipe, round_, other, "clients", "server_validation") for other in groups)
    return JudgedDistillationInputs(
        **_taught(recipe, round_, group),
        judged=[*judged],
        updates=updates(recipe, round_, group),
    )


@_distilling(new_generator="generator.safetensors")
def data_free_distillation(
    recipe: Recipe, round_: int, group: int
) -> DataFreeDistillationInputs[str]:
    """Teach a group's model on images that the server generates."""
    return DataFreeDistillationInputs(
        info=info(recipe),
        start=student_start(recipe, round_, group),
        members=teacher_models(recipe, round_),
        participants=[
            participants_table(recipe, *place)
            for *place, kind in member_places(recipe, round_, teaching_of(recipe).ensemble)
            if kind == "aggregated"
        ],
        histogram=data_files.label_histogram(recipe),
        generator=_last_generator(recipe, round_ - 1, group),
    )


def student_start(recipe: Recipe, round_: int, group: int) -> str:
    """Return w_{t,k}, or w*_{t-1,k} where trained models are teachers only."""
    if goes_on(recipe) and group in client_groups(recipe):
        return global_model(recipe, round_ - 1, group)
    return aggregated_model(recipe, round_, group)


def teacher_models(recipe: Recipe, round_: int) -> list[str]:
    """Return the models of the teacher's members."""
    places = member_places(recipe, round_, teaching_of(recipe).ensemble)
    return [path for place in places for path in member_models(recipe, *place)]


def _last_generator(recipe: Recipe, last: int, group: int) -> File | None:
    """Return the generator as the last student up to a round has left it, if there was one."""
    made = (t for t in range(last, 0, -1) if is_distilled(recipe, t, group))
    stage = data_free_distillation
    return next((stage(recipe, t, group, output="new_generator") for t in made), None)


def round_state(recipe: Recipe, round_: int) -> list[File]:
    """Return what the round after this one reads besides models: states and generators, if any."""
    groups = client_groups(recipe)
    made = [aggregation.job(recipe, round_, group).files.get("new_state") for group in groups]
    if client_state.used(recipe):
        made += [client_state(recipe, round_, group) for group in groups]
    if generates(recipe):
        made += [_last_generator(recipe, round_, group) for group in students(recipe)]
    return [file for file in made if file]


def _teacher_of(recipe: Recipe) -> Stage:
    """Return the stage that distils students of a configuration."""
    if generates(recipe):
        return data_free_distillation
    if teaching_of(recipe).server.drop_worst != "none":
        return judged_distillation
    if caches_labels(recipe) or receives_server_logits(recipe):
        return label_distillation
    return distillation


#: The stages that make students, of which a configuration uses one.
DISTILLATIONS = (distillation, label_distillation, judged_distillation, data_free_distillation)


@partial(
    _of_rounds,
    outputs={"output": "selected_labels.safetensors"},
    module="distillation",
    reads=teaching,
    used=receives_server_logits,
)
def selected_labels(recipe: Recipe, round_: int, group: int) -> SelectedLabelsInputs[str]:
    """Select what the server's model learns from each public sample."""
    return SelectedLabelsInputs(
        **_student(recipe, round_, group),
        logits=[*teacher_logits(recipe, round_)],
        before=chosen_labels(recipe, round_ - 1),
    )


def chosen_labels(recipe: Recipe, round_: int) -> File | None:
    """Return the labels that the server's model learns after a round, if it selects them itself."""
    selects = receives_server_logits(recipe) and is_distilled(recipe, round_, 0)
    return selected_labels(recipe, round_, 0) if selects else None


# --- the global model -----------------------------------------------------------------------------

#: A global model is found via models this many rounds apart, so that recursion is not deep.
_STEP = 25


@cache
def global_model(recipe: Recipe, round_: int, group: int) -> str:
    """Return w*_{t,k}; round 0 is the run's start, by default the initial model."""
    for earlier in range(_STEP, round_, _STEP):
        global_model(recipe, earlier, group)
    if round_ == 0:
        if recipe.start and (recipe.start_of == "all" or group not in client_groups(recipe)):
            return recipe.start
        model = model_of(recipe, group)
        return data_files.initial_weights(recipe.data, model, recipe.seed, group)
    if is_distilled(recipe, round_, group):
        return _teacher_of(recipe)(recipe, round_, group)
    if takes_features(recipe, group):
        return feature_training(recipe, round_, group)
    if takes_head(recipe, group):
        return head_sharing(recipe, round_, group)
    return aggregated_model(recipe, round_, group)
