"""Recipes of one-shot federated learning."""

from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from fedstage.settings.aggregation import faults_of_secure
from fedstage.settings.aggregators import Aggregator, AggregatorTraining, Averaging
from fedstage.settings.base import (
    ClientCount,
    Count,
    Fraction,
    Seed,
    Settings,
    Share,
    WeightsFile,
)
from fedstage.settings.data import Data
from fedstage.settings.generators import Generator
from fedstage.settings.models import Model, has_batch_norm
from fedstage.settings.numerics import Numerics
from fedstage.settings.optimisation import Client
from fedstage.settings.partitions import Core, Partition
from fedstage.settings.prototypes import Prototypes
from fedstage.settings.public import HeldOut, Public, public_part
from fedstage.settings.quantisation import NotQuantised, Quantisation
from fedstage.settings.recipes import Recipe
from fedstage.settings.samples import check_clients, check_maps, check_public, check_samples
from fedstage.settings.selections import Members
from fedstage.settings.server import STUDENTS, Server
from fedstage.settings.teaching import Teaching
from fedstage.settings.traits import Lacks, Needs, Part, Trait, clashes
from fedstage.settings.transfers import OneShotTransfer
from fedstage.settings.unknown import OF_ONE_SHOT, Unknown, check_unknown


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

    needs: ClassVar[Needs] = {"start": (Trait.START_OUTPUTS,)}
    lacks: ClassVar[Lacks] = {
        "no server": ("", Trait.SERVER),
        "no generator": ("", Trait.FROM_SERVER),
    }
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
    numerics: Numerics = Numerics()
    """How numbers are computed."""
    seed: Seed
    """Seed of all random draws."""

    @property
    def client_models(self) -> tuple[Model, ...]:
        """The architectures of clients, which are assigned in turn."""
        return self.architectures or (self.model,)

    @property
    def left(self) -> int:
        """The number of clients that are not forgotten."""
        return self.clients - len(set(self.forget))

    @property
    def teaching(self) -> Teaching[OneShotTransfer] | None:
        """What a student is trained to learn, if there is one."""
        how, server = self.distillation, self.server
        if how is None or how.teacher == "moments" or server is None:
            return None
        return Teaching(server, how, self.public)

    def declarations(self, key: str = "") -> Iterator[Part]:
        """Yield the parts that are read, in their roles."""
        yield from (part for part in super().declarations() if part.key != "public")
        how = self.distillation
        if how is None or how.teacher == "moments":
            return
        of_rounds = (Trait.JUDGED, Trait.SUBSETS, Trait.LIVE, Trait.ROUNDS)
        one_shot: Lacks = {"name": ("in one shot", *of_rounds)}
        yield Part("distillation", how, {"name": (Trait.SERVER,)}, one_shot)
        yield public_part(self.public)
        if self.server is not None:
            yield Part("server", self.server, STUDENTS, {})

    def _faults(self) -> Iterator[str]:
        yield from check_clients(self.data, self.partition)
        models = (*self.client_models, self.student or self.model)
        yield from check_samples(self.data, models, self.client, self.server, self.numerics)
        for model in self.client_models:
            if model.more_outputs:
                yield (
                    f"model.more_outputs = {model.more_outputs!r}: follows from unknown or "
                    "prototypes; leave it out"
                )
        rest = round(1 - self.aggregator_fraction, 9)
        if self.local_fraction not in (None, 1.0, rest):
            yield (
                f"local_fraction = {self.local_fraction}: must be 1 (all samples) or "
                f"1 - aggregator_fraction = {rest}"
            )
        if max(self.forget, default=0) >= self.clients:
            yield (
                f"forget = {list(self.forget)}: at most {self.clients - 1}, the last of "
                f"clients = {self.clients}"
            )
        if not self.left:
            yield f"forget = {list(self.forget)}: at least 1 client must stay"
        yield from clashes(self.declarations())
        yield from _check_learnt(self, self.data, self.client_models)
        if self.aggregator.name == "fused_features":
            if self.prototypes is None:
                yield "prototypes = null: aggregator = fused_features needs clients that learn some"
            elif len(set(self.client_models)) > 1:
                yield "architectures: must be one with aggregator = fused_features"
        if self.aggregator.name == "least_unknown" and self.unknown is None:
            yield "unknown = null: aggregator = least_unknown needs clients that learn it"
        if self.members is not None:
            yield from self._check_members(self.members)
        if self.aggregator.fitted:
            yield from self._check_fit()
        if self.generator is not None:
            yield from self._check_norms(self.generator)
        if self.distillation is not None:
            yield from self._check_distillation(self.distillation)

    def _check_members(self, chosen: Members) -> Iterator[str]:
        if chosen.count > self.left:
            yield f"members.count = {chosen.count}: at most {self.left}, the clients not forgotten"
        if chosen.judged and not self.validation:
            yield f"validation = 0: members = {chosen.name} needs more than 0"

    def _check_fit(self) -> Iterator[str]:
        """Yield why an aggregator has no samples to fit, or samples that trained the clients."""
        where = f"aggregator = {self.aggregator.name!r}"
        training = self.aggregator_training
        if self.aggregator.trained and training is None:
            needed = " or ".join(self.aggregator.trained_by)
            yield f"aggregator_training = null: {where} needs {needed}"
        if self.aggregator.trained and training is not None:
            yield from self._check_training(training)
        if not self.aggregator_fraction or self.local_fraction == 1.0:
            yield (
                f"aggregator_fraction = {self.aggregator_fraction}, local_fraction = "
                f"{self.local_fraction}: {where} needs samples that no client's model was trained "
                "on; set aggregator_fraction above 0 and local_fraction to null"
            )
        if self.start is not None:
            yield (
                f"start = {self.start!r}: {where} needs samples that no client's model was trained "
                "on, but their start may have been trained on them"
            )

    def _check_distillation(self, distillation: OneShotTransfer) -> Iterator[str]:
        student = self.student or self.model
        if distillation.teacher == "moments":
            yield from check_maps(f"distillation = {distillation.name!r}", [student], headless=True)
            return
        if student.more_outputs:
            yield f"student.more_outputs = {student.more_outputs}: only for models of clients"
        yield from check_public(self.data, self.public, self.core, self.generator)

    def _check_norms(self, generator: Generator) -> Iterator[str]:
        """Yield models without the normalisation layers that a generator reads."""
        if weight := getattr(generator, "batch_norm", 0):
            for model in dict.fromkeys(self.client_models):
                if not has_batch_norm(model):
                    yield (
                        f"generator.batch_norm = {weight}: model = {model.name!r} "
                        "has no batch normalisation; set it to 0"
                    )

    def _check_training(self, training: AggregatorTraining) -> Iterator[str]:
        if training.name not in self.aggregator.trained_by:
            yield (
                f"aggregator_training = {training.name!r}: aggregator = "
                f"{self.aggregator.name!r} is trained by {' or '.join(self.aggregator.trained_by)}"
            )
        most = self.left if self.members is None else self.members.count
        if training.name == "mirror_descent" and (training.predictors or 1) > most:
            yield f"aggregator_training.predictors = {training.predictors}: at most {most} members"
        if training.name == "federated" and training.secure is not None:
            sizes = [self.left]
            yield from faults_of_secure(training.secure, sizes, "aggregator_training.secure")


def check_alone(own: OneShot, recipe: Recipe) -> Iterator[str]:
    """Yield what is incompatible with what each client of a recipe learns alone."""
    parts = [
        part
        for key in ("data", "client", "numerics")
        for part in getattr(recipe, key).declarations(key)
    ]
    for key in ("unknown", "prototypes"):
        if (learnt := getattr(own, key)) is not None:
            yield from clashes([*parts, *learnt.declarations(key)])
    yield from _check_learnt(own, recipe.data, (recipe.model,))


def _check_learnt(own: OneShot, data: Data, models: tuple[Model, ...]) -> Iterator[str]:
    """Yield data and models with which clients cannot learn an unknown class, or prototypes."""
    if own.unknown is not None:
        yield from check_unknown(own.unknown, data, models)
    if own.prototypes is not None:
        yield from check_maps("prototypes", models, headless=True)
