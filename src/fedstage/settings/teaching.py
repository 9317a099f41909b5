"""Checks that what students learn from suits a line's ensemble, models and numerics."""

from collections.abc import Iterable, Iterator

from fedstage.settings.ensembles import EnsembleTrainer, GlobalTrainer
from fedstage.settings.models import Model
from fedstage.settings.numerics import Numerics
from fedstage.settings.public import Public
from fedstage.settings.server import Server, adds_terms, has_factors, has_live_teachers
from fedstage.settings.transfers import StudentLoss

#: What a student that learns beside a generator has not.
BETWEEN_STEPS = ("swa", "moving_average", "early_stopping", "buffer", "labels")

#: Public samples that have labels.
LABELLED = ("core", "generated")

#: What only students of a round's ensemble can learn from.
OF_ROUNDS = ("teacher_images", "factor_transfer")


def changed(server: Server, keys: Iterable[str]) -> Iterator[str]:
    """Yield the keys of settings that are not at their defaults."""
    fields = Server.model_fields
    yield from (key for key in keys if getattr(server, key) != fields[key].default)


def check_labels(server: Server, public: Public) -> Iterator[str]:
    """Yield that public samples have no labels to learn."""
    if server.labels and public.name not in LABELLED:
        yield (
            f"server.labels = {server.labels}: only for public = core, because samples of public = "
            f"{public.name} count as unlabelled"
        )


def check_teaching(
    server: Server,
    trainer: GlobalTrainer,
    ensemble: EnsembleTrainer | None,
    public: Public,
    models: Iterable[Model],
    numerics: Numerics,
) -> Iterator[str]:
    """Yield what students cannot learn from the teachers and public samples of a line."""
    yield from check_labels(server, public)
    if has_live_teachers(server) or has_factors(server):
        where = "teacher_images = 'augmented'" if has_live_teachers(server) else "factor_transfer"
        if ensemble is not None and ensemble.name == "bayesian":
            yield f"server.{where}: not for ensemble = bayesian, whose members are drawn as logits"
        if server.drop_worst != "none":
            yield f"server.{where}: not with server.drop_worst, which chooses among logits"
    if server.drop_worst != "none" and trainer.starts_from == "previous":
        yield "server.drop_worst: not with global.starts_from = previous, which averages nobody"
    if has_factors(server):
        yield from _check_maps(models)
    if adds_terms(server) and numerics.compile:
        yield (
            "numerics.compile = true: not with server.labels, buffer, factor_transfer or "
            "teacher_images, whose sum of losses is not compiled"
        )
    if has_live_teachers(server) and numerics.cuda_graphs:
        yield (
            "numerics.cuda_graphs = true: not with server.teacher_images = 'augmented', whose "
            "ensemble is weighted on the CPU"
        )


def _check_maps(models: Iterable[Model]) -> Iterator[str]:
    for model in dict.fromkeys(models):
        if not model.pools_maps:
            yield (
                f"model = {model.name!r}: server.factor_transfer needs an architecture that pools "
                "its last feature maps, such as resnet8 or wrn16_2"
            )


def check_selection(how: StudentLoss, public: Public | None) -> Iterator[str]:
    """Yield that a student which selects has no labels; None where clients do not hear it."""
    if how.selects and (public is None or public.name != "core"):
        yield (
            f"distillation = {how.name!r}: needs public = core, whose samples are labelled, and "
            "local = {digest: {teacher: server}}"
        )
    if not how.selects and public is not None:
        yield "local.teacher = 'server': needs distillation = fedgems, which clients learn by, too"
