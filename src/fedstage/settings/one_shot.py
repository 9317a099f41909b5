"""Lines of one-shot federated learning."""

from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from fedstage.settings.aggregators import (
    Aggregator,
    AggregatorTraining,
    Averaging,
    LeastUnknown,
)
from fedstage.settings.base import (
    Count,
    Fraction,
    Positive,
    Seed,
    Settings,
    WeightsFile,
)
from fedstage.settings.data import Data
from fedstage.settings.generators import Generator
from fedstage.settings.known import check_known
from fedstage.settings.models import Model, has_batch_norm
from fedstage.settings.numerics import Numerics
from fedstage.settings.optimisation import Client
from fedstage.settings.partitions import Core, Partition
from fedstage.settings.prototypes import Prototypes, check_learnt_prototypes
from fedstage.settings.public import HeldOut, Public
from fedstage.settings.quantisation import NotQuantised, Quantisation
from fedstage.settings.samples import check_clients, check_public, check_samples
from fedstage.settings.selections import Members
from fedstage.settings.server import Server
from fedstage.settings.teaching import (
    BETWEEN_STEPS,
    LABELLED,
    OF_ROUNDS,
    Teaching,
    changed,
    check_generated,
    check_images,
    check_labels,
    check_moments,
)
from fedstage.settings.transfers import OneShotTransfer
from fedstage.settings.unknown import OF_ONE_SHOT, Unknown, check_unknown


class OneShot(Settings):
    """Settings that one-shot runs do not share with federated ones.

    `aggregator_fraction` of each client's samples are for the aggregator. Clients train on the
    others (`local_fraction` = null) or on all (1), which excludes aggregators fitted to samples.
    Clients may learn an `unknown` class, with one more output than classes, or `prototypes`.
    The ensemble has the models of all clients, or of chosen `members`.
    With a `quantisation` the aggregated models are quantised. Models and data of the clients in
    `forget` do not enter the aggregator. With a `distillation` the aggregator teaches a `student`
    (by default of the architecture of `model`) on the public images, which predicts in its place.
    A `generator` makes the images of `public` = generated.
    """

    uses: ClassVar[Mapping[str, str]] = OF_ONE_SHOT
    aggregator_fraction: Fraction = 0.0
    local_fraction: Annotated[float, Field(gt=0, le=1)] | None = None
    initialisation: Literal["common", "own"] = "common"
    unknown: Unknown | None = None
    prototypes: Prototypes | None = None
    quantisation: Quantisation = NotQuantised(name="none")
    members: Members | None = None
    aggregator: Aggregator = Averaging(name="averaging")
    aggregator_training: AggregatorTraining | None = None
    forget: Annotated[tuple[Count, ...], Field(strict=False)] = ()
    generator: Generator | None = None
    distillation: OneShotTransfer | None = None
    student: Model | None = None


class OneShotLine(OneShot):
    """One-shot federated learning: all that determines its final predictions."""

    data: Data
    clients: Positive
    partition: Partition
    validation: Fraction = 0.0
    core: Core | None = None
    model: Model
    architectures: Annotated[tuple[Model, ...], Field(strict=False)] = ()
    start: WeightsFile | None = None
    client: Client
    server: Server | None = None
    public: Public = HeldOut(name="held_out")
    numerics: Numerics = Numerics()
    seed: Seed

    @property
    def teaching(self) -> Teaching[OneShotTransfer] | None:
        """What a student is trained to learn, if there is one."""
        how, server = self.distillation, self.server
        if how is None or how.teacher == "moments" or server is None:
            return None
        return Teaching(server, how, self.public)

    def _faults(self) -> Iterator[str]:
        yield from check_clients(self.data, self.partition)
        models = (*(self.architectures or (self.model,)), self.student or self.model)
        yield from check_samples(self.data, models, self.client, self.server, self.numerics)
        divided = (self.data, self.clients, self.partition, self.core)
        yield from check_known(*divided, models, self.client)
        for model in self.architectures or (self.model,):
            if model.more_outputs:
                yield (
                    f"model.more_outputs = {model.more_outputs!r}: follows from unknown or "
                    "prototypes; leave it out"
                )
        if self.aggregator.sees_images and self.data.samples != "images":
            yield (
                f"aggregator = {self.aggregator.name!r}: sees images, and the samples of data = "
                f"{self.data.name} are {self.data.samples}"
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
        if len(set(self.forget)) == self.clients:
            yield f"forget = {list(self.forget)}: at least 1 client must stay"
        if self.unknown is not None:
            of_clients = self.architectures or (self.model,)
            parts = (self.data, of_clients, self.client, self.numerics)
            yield from check_unknown(self.unknown, *parts)
            if self.start is not None:
                yield (
                    f"start = {self.start!r}: not with unknown, for which models have one more "
                    "output than what they start from"
                )
        if self.prototypes is not None:
            yield from check_learnt_prototypes(self)
        if self.aggregator.name == "fused_features" and self.prototypes is None:
            yield "prototypes = null: aggregator = fused_features needs clients that learn some"
        if self.aggregator.name == "least_unknown":
            yield from self._check_least_unknown(self.aggregator)
        if self.members is not None:
            yield from self._check_members(self.members)
        if self.aggregator.fitted:
            yield from self._check_fit()
        if self.generator is not None:
            yield from check_images(self.generator, self.data)
        if self.generator is not None and self.generator.trained_by == "server":
            yield from self._check_synthesis(self.generator)
        if self.distillation is not None:
            yield from self._check_distillation(self.distillation)

    def _check_least_unknown(self, rule: LeastUnknown) -> Iterator[str]:
        if self.unknown is None:
            yield "unknown = null: aggregator = least_unknown needs clients that learn it"
        left = self.clients - len(set(self.forget))
        most = left if self.members is None else min(left, self.members.count)
        if (rule.voters or 1) > most:
            yield f"aggregator.voters = {rule.voters}: at most {most}, the models of the ensemble"

    def _check_members(self, chosen: Members) -> Iterator[str]:
        left = self.clients - len(set(self.forget))
        if chosen.count > left:
            yield f"members.count = {chosen.count}: at most {left}, the clients not forgotten"
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
        if training is not None and training.name == "proxy" and self.aggregator.name != "voting":
            if not self.data.server_validation:
                yield (
                    "data.server_validation = 0: aggregator_training = proxy needs at least 1 "
                    "sample"
                )
            return
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
        if distillation.teacher == "moments":
            yield from check_moments(self)
            return
        if self.server is None:
            yield "server = null: distillation needs the server's settings"
            return
        student = self.student or self.model
        if student.more_outputs:
            yield f"student.more_outputs = {student.more_outputs}: only for models of clients"
        yield from check_public(self.data, self.public, self.core, self.generator)
        if self.generator is not None:
            yield from check_generated(self.generator, self.public)
        by_server = self.generator is not None and self.generator.trained_by == "server"
        if distillation.name == "cotrained" and not by_server:
            yield (
                "distillation = 'cotrained': needs a generator that the server trains, dense or "
                "coboosting"
            )
        if distillation.teacher == "labels" and self.public.name not in LABELLED:
            yield (
                f"distillation = {distillation.name!r}: only for public = "
                f"{' or '.join(LABELLED)}, because samples of public = {self.public.name} count as "
                "unlabelled"
            )
        if distillation.teacher == "labels":
            for key in ("members", "unknown"):
                if getattr(self, key) is not None:
                    yield f"{key}: not with distillation = labels, which no client's model teaches"
        if self.server.drop_worst != "none":
            yield f"server.drop_worst = {self.server.drop_worst!r}: only for federated training"
        if self.server.samples_a_round is not None:
            yield (
                f"server.samples_a_round = {self.server.samples_a_round}: only for federated "
                "training, because one shot has no rounds"
            )
        yield from check_labels(self.server, self.public)
        for key in changed(self.server, OF_ROUNDS):
            yield f"server.{key}: only for federated training"
        if self.server.buffer is not None and self.server.buffer.after:
            yield (
                f"server.buffer.after = {self.server.buffer.after}: only for federated training, "
                "because one shot has no rounds"
            )
        if self.server.early_stopping is not None and not self.data.server_validation:
            yield "data.server_validation = 0: server.early_stopping needs at least 1 sample"

    def _check_synthesis(self, generator: Generator) -> Iterator[str]:
        """Yield settings of a server that a generator does not train with."""
        where = f"generator = {generator.name}"
        if self.server is None or self.server.epochs is None:
            yield f"server.epochs = null: {where} needs them, a batch of images each"
            return
        if self.members is not None:
            yield f"members = {self.members.name}: not with {where}, which has the models of all"
        if self.unknown is not None:
            yield f"unknown: not with {where}, whose images have known classes"
        for key in changed(self.server, BETWEEN_STEPS):
            yield f"server.{key}: not with {where}, whose student learns beside it"
        if weight := getattr(generator, "batch_norm", 0):
            for model in dict.fromkeys(self.architectures or (self.model,)):
                if not has_batch_norm(model):
                    yield (
                        f"generator.batch_norm = {weight}: model = {model.name!r} "
                        "has no batch normalisation; set it to 0"
                    )

    def _check_training(self, training: AggregatorTraining) -> Iterator[str]:
        left = self.clients - len(set(self.forget))
        if training.name not in self.aggregator.trained_by:
            yield (
                f"aggregator_training = {training.name!r}: aggregator = "
                f"{self.aggregator.name!r} is trained by {' or '.join(self.aggregator.trained_by)}"
            )
        most = left if self.members is None else self.members.count
        if training.name == "mirror_descent" and (training.predictors or 1) > most:
            yield f"aggregator_training.predictors = {training.predictors}: at most {most} members"
        if training.name != "proxy" and (training.participants or 1) > left:
            yield (
                f"aggregator_training.participants = {training.participants}: at most {left}, the "
                "clients that are not forgotten"
            )
        if training.early_stopping is not None and not self.validation:
            yield "validation = 0: aggregator_training.early_stopping needs more than 0"
