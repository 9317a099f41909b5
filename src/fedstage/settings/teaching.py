"""What students learn from whom, and checks that it suits a line's models and numerics."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from fedstage.settings.data import Data
from fedstage.settings.ensembles import EnsembleTrainer, GlobalTrainer
from fedstage.settings.generators import Generator, RoundGenerator
from fedstage.settings.groups import models_of
from fedstage.settings.models import Model, has_batch_norm
from fedstage.settings.numerics import Numerics
from fedstage.settings.public import Public
from fedstage.settings.server import Server, adds_terms, has_factors, has_live_teachers
from fedstage.settings.transfers import StudentLoss, Transfer

How = TypeVar("How", covariant=True)
What = TypeVar("What", covariant=True)


@dataclass(frozen=True)
class Teaching(Generic[How]):
    """How students learn: the `distillation` of `public` samples, with a `server`'s settings."""

    server: Server
    distillation: How
    public: Public


@dataclass(frozen=True)
class EnsembleTeaching(Teaching[Transfer]):
    """What is learnt in rounds from an `ensemble`, by students of a `trainer` or by clients.

    A `generator` makes the images in place of public ones.
    """

    ensemble: EnsembleTrainer
    trainer: GlobalTrainer | None
    generator: RoundGenerator | None


class Teaches(Protocol[What]):
    """A line that may teach."""

    @property
    def server(self) -> Server | None:
        """How students learn."""

    @property
    def teaching(self) -> What | None:
        """What students learn from whom, if there are students."""


def teaching_of(line: Teaches[What]) -> What:
    """Return what students of a line learn from whom; it must have students."""
    assert line.teaching is not None, "the graph has such stages only of lines with students"
    return line.teaching


def server_of(line: Teaches[object]) -> Server:
    """Return the settings with which a line's server trains; it must train something."""
    assert line.server is not None, "checked by the line: who trains on the server has these"
    return line.server


#: What a student that learns beside a generator has not.
BETWEEN_STEPS = ("swa", "moving_average", "early_stopping", "buffer", "labels")

#: Public samples that have labels.
LABELLED = ("core", "generated")

#: What is only about public images that are there from the start.
OF_IMAGES = ("samples_a_round", "augmentation", "drop_worst")

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


def check_images(generator: Generator | RoundGenerator, data: Data) -> Iterator[str]:
    """Yield that a generator's images are no samples of the data."""
    if data.samples != "images":
        yield (
            f"generator = {generator.name!r}: generates images, and the samples of data = "
            f"{data.name} are {data.samples}"
        )


def check_generated(generator: Generator | RoundGenerator, public: Public) -> Iterator[str]:
    """Yield that students do not learn from what a generator makes."""
    if public.name != "generated":
        yield (
            f"public = {public.name}: must be generated with generator = {generator.name}, whose "
            "images take the place of public data"
        )


def check_generator(generator: RoundGenerator, line: Any) -> Iterator[str]:
    """Yield what a `Line` has that does not go with a generator beside its students."""
    where = f"generator = {generator.name}"
    yield from check_images(generator, line.data)
    yield from check_generated(generator, line.public)
    ensemble = line.ensemble
    if ensemble.name != "clients" or ensemble.weights != "uniform" or ensemble.average != "logits":
        yield (
            f"ensemble: must be clients with uniform weights, of logits, with {where}, which "
            "weighs each client by its classes itself"
        )
    if line.distillation.name != "kl":
        yield f"distillation = {line.distillation.name!r}: must be kl with {where}"
    if line.server.steps is None:
        yield f"server.steps = null: {where} needs them, the student's of a round"
    for key in changed(line.server, (*BETWEEN_STEPS, *OF_IMAGES, *OF_ROUNDS)):
        yield f"server.{key}: not with {where}, whose student learns beside it"
    for key in ("compile", "cuda_graphs"):
        if getattr(line.numerics, key):
            yield f"numerics.{key} = true: not with {where}, whose steps have no code for it"


def check_moments(line: Any) -> Iterator[str]:
    """Yield what a `OneShotLine` has in vain where nobody trains, or a model of other features."""
    where, model = "distillation = 'closed_form'", line.student or line.model
    for key in ("members", "unknown", "prototypes", "generator"):
        if getattr(line, key) is not None:
            yield f"{key}: not with {where}, for which no client trains a model"
    if not model.pools_maps or getattr(model, "head", None) is not None:
        yield (
            f"model = {model.name!r}: {where} needs an architecture without head that pools its "
            "last feature maps, such as resnet8 or wrn16_2"
        )


def check_odds(line: Any) -> Iterator[str]:
    """Yield what a `Line` has that does not go with weights by the odds of discriminators."""
    where = "ensemble = odds"
    if line.data.samples != "images":
        yield (
            f"{where}: discriminates images, and the samples of data = {line.data.name} are "
            f"{line.data.samples}"
        )
    if line.local.exchanges == "logits":
        yield f"{where}: not with local = {line.local.name}, whose clients learn from one another"
    for key in changed(line.server, OF_ROUNDS) if line.server else ():
        yield f"server.{key}: not with {where}, whose odds are of public images as they are"


def check_drop_worst(line: Any, where: str) -> Iterator[str]:
    """Yield settings with which averaging the kept clients differs from the aggregation."""
    aggregation = line.aggregation
    if line.ensemble is None or line.ensemble.name != "clients":
        yield f"{where}: only for ensemble = clients, whose members it judges"
    if aggregation.learning_rate != 1.0:
        yield f"{where}: only for aggregation.learning_rate = 1"
    if aggregation.server_optimizer.name != "average":
        yield f"{where}: only for aggregation.server_optimizer = average"
    if aggregation.rule.name != "average":
        yield f"{where}: only for aggregation.rule = average"
    if aggregation.discount.name != "constant" or aggregation.stale != "models":
        yield f"{where}: only for aggregation.discount = constant and stale = models"
    if line.head_transfer:
        yield f"{where}: not with head_transfer, which averages the heads of all participants"
    if line.local.name == "fednova":
        yield f"{where}: not for local = fednova, which takes no plain average"
    if aggregation.batch_norm != "average" and any(map(has_batch_norm, models_of(line))):
        yield f"{where}: only for aggregation.batch_norm = average"
