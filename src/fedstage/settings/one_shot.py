"""Lines of one-shot federated learning."""

from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from fedstage.settings.aggregators import (
    Aggregator,
    AggregatorTraining,
    Averaging,
)
from fedstage.settings.base import (
    Count,
    Fraction,
    Positive,
    Seed,
    Settings,
    WeightsFile,
)
from fedstage.settings.data import Data, HeldOut, Public
from fedstage.settings.known import check_known
from fedstage.settings.models import Model
from fedstage.settings.numerics import Numerics
from fedstage.settings.optimisation import Client
from fedstage.settings.partitions import Core, Partition
from fedstage.settings.quantisation import NotQuantised, Quantisation
from fedstage.settings.samples import check_clients, check_public, check_samples
from fedstage.settings.selections import Members
from fedstage.settings.server import Server
from fedstage.settings.teaching import OF_ROUNDS, changed, check_labels, check_selection
from fedstage.settings.transfers import Transfer


class OneShot(Settings):
    """Settings that one-shot runs do not share with federated ones.

    `aggregator_fraction` of each client's samples are for the aggregator. Clients train on the
    others (`local_fraction` = null) or on all (1), which excludes aggregators fitted to samples.
    The ensemble has the models of all clients, or of chosen `members`.
    With a `quantisation` the aggregated models are quantised. Models and data of the clients in
    `forget` do not enter the aggregator. With a `distillation` the aggregator teaches a `student`
    (by default of the architecture of `model`) on the public images, which predicts in its place.
    """

    uses: ClassVar[Mapping[str, str]] = {"quantisation": "models.int8"}
    aggregator_fraction: Fraction = 0.0
    local_fraction: Annotated[float, Field(gt=0, le=1)] | None = None
    initialisation: Literal["common", "own"] = "common"
    quantisation: Quantisation = NotQuantised(name="none")
    members: Members | None = None
    aggregator: Aggregator = Averaging(name="averaging")
    aggregator_training: AggregatorTraining | None = None
    forget: Annotated[tuple[Count, ...], Field(strict=False)] = ()
    distillation: Transfer | None = None
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

    def _faults(self) -> Iterator[str]:
        yield from check_clients(self.data, self.partition)
        models = (*(self.architectures or (self.model,)), self.student or self.model)
        yield from check_samples(self.data, models, self.client, self.server, self.numerics)
        divided = (self.data, self.clients, self.partition, self.core)
        yield from check_known(*divided, models, self.client)
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
        if self.members is not None:
            yield from self._check_members(self.members)
        if self.aggregator.fitted:
            yield from self._check_fit()
        if self.distillation is not None:
            yield from check_selection(self.distillation, None)
            yield from self._check_distillation()

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

    def _check_distillation(self) -> Iterator[str]:
        if self.server is None:
            yield "server = null: distillation needs the server's settings"
            return
        yield from check_public(self.data, self.public, self.core)
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
