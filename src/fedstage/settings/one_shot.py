"""Recipes of one-shot federated learning."""

from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field

from fedstage.protocol.groups import has_batch_norm, models_of
from fedstage.protocol.one_shot import members
from fedstage.protocol.teaching import teaching
from fedstage.settings.aggregation import faults_of_secure
from fedstage.settings.aggregators import (
    Aggregator,
    AggregatorTraining,
    Averaging,
    Members,
)
from fedstage.settings.base import (
    ClientCount,
    Count,
    Fraction,
    Seed,
    Settings,
    Share,
    WeightsFile,
)
from fedstage.settings.compatibility import clashes
from fedstage.settings.data import Data, HeldOut, Public
from fedstage.settings.generators import Generator
from fedstage.settings.models import Model
from fedstage.settings.numerics import Numerics
from fedstage.settings.one_shot_clients import (
    OF_ONE_SHOT,
    NotQuantised,
    Prototypes,
    Quantisation,
    Unknown,
)
from fedstage.settings.optimisation import Client
from fedstage.settings.partitions import Core, Partition
from fedstage.settings.privacy import Privacy, check_privacy
from fedstage.settings.recipes import Recipe
from fedstage.settings.samples import (
    check_clients,
    check_maps,
    check_models,
    check_outputs,
    check_public,
)
from fedstage.settings.server import Server
from fedstage.settings.transfers import OneShotTransfer


class OneShot(Settings):
    """Settings of one-shot runs that federated runs do not have."""

    uses: ClassVar[Mapping[str, str]] = OF_ONE_SHOT
    aggregator_fraction: Fraction = 0.0
    """Share of each client's samples that is reserved for the aggregator."""
    local_fraction: Share | None = None
    """Whether clients train on the other samples only (null) or on all of their samples (1). The
    latter excludes aggregators that are fitted to samples.
    """
    initialisation: Literal["common", "own"] = "common"
    """Whether clients start from one common initial model, or each from its own."""
    unknown: Unknown | None = None
    """How clients learn an unknown class, with one more output than classes; by default they do
    not.
    """
    prototypes: Prototypes | None = None
    """How clients learn one prototype per class; by default they do not."""
    quantisation: Quantisation = NotQuantised(name="none")
    """Precision of the aggregated models; by default they are not quantised."""
    members: Members | None = None
    """Clients whose models form the ensemble; by default all."""
    aggregator: Aggregator = Averaging(name="averaging")
    """Rule that combines the models."""
    aggregator_training: AggregatorTraining | None = None
    """How an aggregator with parameters is trained."""
    forget: Annotated[tuple[Count, ...], Field(strict=False)] = ()
    """Clients whose models and data are left out of the aggregator."""
    generator: Generator | None = None
    """Generator of the images of `public` = generated; by default none."""
    distillation: OneShotTransfer | None = None
    """What a student learns from the aggregator on the public images; it then predicts in the
    aggregator's place. By default there is no student.
    """
    student: Model | None = None
    """Architecture of the student; by default `model`."""


class OneShotRecipe(OneShot):
    """One-shot federated learning: everything that determines its final predictions."""

    training: ClassVar[str] = "one_shot"  # of `RunLength`, for what only rounds have
    data: Data
    """The data set."""
    clients: ClientCount
    """Number of clients."""
    partition: Partition
    """How training samples are distributed to clients."""
    validation: Fraction = 0.0
    """Share of each client's samples that is set aside for validation."""
    core: Core | None = None
    """Labelled training samples of the server; by default none."""
    model: Model
    """Architecture of clients' models."""
    architectures: Annotated[tuple[Model, ...], Field(strict=False)] = ()
    """Architectures that are assigned to clients in turn; by default all have `model`."""
    start: WeightsFile | None = None
    """Final model of another recipe from which clients start; by default from initial models."""
    client: Client
    """How clients train."""
    server: Server | None = None
    """How a student trains."""
    public: Public = HeldOut(name="held_out")
    """Images on which the student learns."""
    privacy: Privacy | None = None
    """Noise that hides clients' samples in their models and in the aggregator; by default none."""
    numerics: Numerics = Numerics()
    """How numbers are computed."""
    seed: Seed
    """Seed of all random draws."""

    def _read(self) -> Self:
        """Return these settings, with what nothing reads at its default."""
        unread: dict[str, Any] = {} if teaching(self) else {"server": None}
        if self.distillation is None:
            unread["generator"] = None
        return self.model_copy(update=unread)

    def _faults(self) -> Iterator[str]:
        yield from check_clients(self.data, self.partition)
        how, models = self.distillation, (*models_of(self), self.student or self.model)
        yield from check_models(self.data, models, self.numerics)
        yield from _check_learnt(self, self.data, models_of(self))
        rest = round(1 - self.aggregator_fraction, 9)
        if self.local_fraction not in (None, 1.0, rest):
            yield (
                f"local_fraction = {self.local_fraction}: must be 1 (all samples) or "
                f"1 - aggregator_fraction = {rest}"
            )
        if max(self.forget, default=0) >= self.clients or not len(members(self)):
            yield (
                f"forget = {list(self.forget)}: must be clients, at most {self.clients - 1}, and "
                "leave at least 1"
            )
        if how is not None and how.teacher != "moments" and self.server is None:
            yield f"server = null: must be given with distillation = {how.name}"
        yield from clashes(self._read())
        yield from check_privacy(self)
        alike = self.prototypes is not None and len(set(models_of(self))) == 1
        if self.aggregator.name == "fused_features" and not alike:
            yield "aggregator = fused_features: needs prototypes, and a single architecture"
        yield from self._check_numbers()
        if self.aggregator.fitted:
            yield from self._check_fit()
        if weight := getattr(self.generator, "batch_norm", 0):
            for model in dict.fromkeys(models_of(self)):
                if not has_batch_norm(model):
                    yield (
                        f"generator.batch_norm = {weight}: model = {model.name!r} has no batch "
                        "normalisation; set it to 0"
                    )
        if how is not None and how.teacher == "moments":
            if models[-1].is_linear:
                yield from check_outputs(models[-1:], True)
            else:
                yield from check_maps(f"distillation = {how.name!r}", models[-1:], headless=True)
        elif how is not None:
            yield from check_outputs(models[-1:], False)
            yield from check_public(self.data, self.public, self.core, self.generator)

    def _check_numbers(self) -> Iterator[str]:
        """Yield numbers of clients or models that are more than there are."""
        rule, chosen, training = self.aggregator, self.members, self.aggregator_training
        left = len(members(self))
        models = left if chosen is None else min(left, chosen.count)
        if chosen is not None and chosen.count > left:
            yield f"members.count = {chosen.count}: at most {left}, the clients not forgotten"
        if chosen is not None and chosen.judged and not self.validation:
            yield f"validation = 0: members = {chosen.name} needs more than 0"
        if rule.name == "least_unknown" and self.unknown is None:
            yield "unknown = null: aggregator = least_unknown needs clients that learn it"
        if not rule.trained or training is None:
            return
        if training.name == "mirror_descent" and (training.predictors or 1) > models:
            yield f"aggregator_training.predictors = {training.predictors}: at most {models}"
        if training.name == "federated" and training.secure is not None:
            sizes = [left]
            yield from faults_of_secure(training.secure, sizes, "aggregator_training.secure")

    def _check_fit(self) -> Iterator[str]:
        """Yield why an aggregator has no samples to fit, or samples that trained the clients."""
        rule, training = self.aggregator, self.aggregator_training
        name = "null" if training is None else repr(training.name)
        if rule.trained and (training is None or training.name not in rule.trained_by):
            needed = " or ".join(rule.trained_by)
            yield f"aggregator_training = {name}: must be {needed} with aggregator = {rule.name!r}"
        seen = f"aggregator = {rule.name!r} needs samples that no client's model was trained on"
        if not self.aggregator_fraction or self.local_fraction == 1.0:
            yield (
                f"aggregator_fraction = {self.aggregator_fraction}, local_fraction = "
                f"{self.local_fraction}: {seen}; set the one above 0 and the other to null"
            )
        if self.start is not None:
            yield f"start = {self.start!r}: {seen}, but their start may have been"


def check_alone(own: OneShot, recipe: Recipe) -> Iterator[str]:
    """Yield what is incompatible with what each client of a recipe learns alone."""
    together = {key: getattr(recipe, key) for key in ("data", "client", "numerics")}
    learnt = {"unknown": own.unknown, "prototypes": own.prototypes}
    yield from clashes(SimpleNamespace(**together, **learnt))
    yield from _check_learnt(own, recipe.data, (recipe.model,))


def _check_learnt(own: OneShot, data: Data, models: tuple[Model, ...]) -> Iterator[str]:
    """Yield data and models with which clients cannot learn an unknown class, or prototypes."""
    yield from check_outputs(models, own.unknown is not None)
    source = None if own.unknown is None else own.unknown.outliers
    if source is not None and data.samples not in source.samples:
        yield (
            f"unknown.outliers = {source.name!r}: made from {' or '.join(source.samples)}, and the "
            f"samples of data = {data.name} are {data.samples}"
        )
    if own.prototypes is not None:
        yield from check_maps("prototypes", models, headless=True)
