"""Teachers and students of a round: logits, the labels made of them, and distillations."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from fedstage.plan import data_files, discriminators
from fedstage.plan.graph import File, Files, Stage
from fedstage.plan.members import member_kinds, member_rounds, parse_sampled
from fedstage.plan.taught import is_distilled
from fedstage.plan.training import aggregated_model, global_model, updates
from fedstage.plan.training_folder import FOLDER, info, public_file, public_id, teaching
from fedstage.settings.ensembles import EnsembleTrainer, OneByOne
from fedstage.settings.exchange import (
    caches_labels,
    exchanges_logits,
    generates,
    receives_server_logits,
    teaches_live,
)
from fedstage.settings.groups import client_groups
from fedstage.settings.lines import Line, drops_worst
from fedstage.settings.server import has_factors, needs_validation

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
