"""One-shot lines."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from fedstage.settings.aggregators import (
    FITTED_AGGREGATORS,
    TRAINED_AGGREGATORS,
    Aggregator,
    AggregatorTraining,
    Averaging,
    FederatedRounds,
    ProxySet,
)
from fedstage.settings.base import (
    BY_NAME,
    IN_SHORT,
    Count,
    Fraction,
    NonNegative,
    Positive,
    Settings,
    WeightsFile,
)
from fedstage.settings.data import Data, HeldOut, Public, samples_of
from fedstage.settings.models import Model
from fedstage.settings.numerics import Numerics
from fedstage.settings.optimisation import Client, Server
from fedstage.settings.partitions import Partition
from fedstage.settings.quantisation import NotQuantised, Quantisation
from fedstage.settings.samples import check_samples


class KlTransfer(Settings):
    """A student learns the teacher's probabilities, with the temperature of `server`."""

    name: Literal["kl"]


class L1Transfer(Settings):
    """A student learns the teacher's logits: the mean absolute difference (FedKD)."""

    name: Literal["l1"]


class FedEtTransfer(Settings):
    """A student learns the teacher's class and, `diversity` times, what dissenters say (Fed-ET)."""

    name: Literal["fedet"]
    diversity: NonNegative = 0.05


Transfer = Annotated[KlTransfer | L1Transfer | FedEtTransfer, BY_NAME, IN_SHORT]


class OneShot(Settings):
    """What a one-shot run has beside the settings that it shares with federated ones.

    `aggregator_fraction` of each client's samples are for the aggregator. `local_fraction` is the
    share that the clients' models are trained on: the others (null), or all (1), with which an
    aggregator can only be one that needs no samples. With a `quantisation` it is quantised models
    that are aggregated. The models and data of the clients in `forget` are left out of the
    aggregator. With a `distillation` it is a `student` (by default of the
    architecture of `model`) that predicts, whom the aggregator has taught on the public images.
    """

    aggregator_fraction: Fraction = 0.0
    local_fraction: Annotated[float, Field(gt=0, le=1)] | None = None
    initialisation: Literal["common", "own"] = "common"
    quantisation: Quantisation = NotQuantised(name="none")
    aggregator: Aggregator = Averaging(name="averaging")
    aggregator_training: AggregatorTraining | None = None
    forget: Annotated[tuple[Count, ...], Field(strict=False)] = ()
    distillation: Transfer | None = None
    student: Model | None = None


class OneShotLine(OneShot):
    """One-shot federated learning: all that determines what it predicts in the end."""

    data: Data
    clients: Positive
    partition: Partition
    validation: Fraction = 0.0
    model: Model
    architectures: Annotated[tuple[Model, ...], Field(strict=False)] = ()
    start: WeightsFile | None = None
    client: Client
    server: Server | None = None
    public: Public = HeldOut(name="held_out")
    numerics: Numerics = Numerics()
    seed: int

    @model_validator(mode="after")
    def _consistent(self) -> "OneShotLine":
        check_samples(self, (*(self.architectures or (self.model,)), self.student or self.model))
        if self.aggregator.name == "moe" and samples_of(self.data) != "images":
            raise ValueError(
                "aggregator = 'moe': sees images, and the samples of data = "
                f"{self.data.name} are {samples_of(self.data)}"
            )
        self._check_fractions()
        self._check_forgotten()
        if self.aggregator.name in FITTED_AGGREGATORS:
            self._check_fit()
        if self.distillation is not None:
            self._check_distillation()
        return self

    def _check_fractions(self) -> None:
        rest = round(1 - self.aggregator_fraction, 9)
        if self.local_fraction not in (None, 1.0, rest):
            raise ValueError(
                f"local_fraction = {self.local_fraction}: must be 1 (all samples) or "
                f"1 - aggregator_fraction = {rest}"
            )

    def _check_forgotten(self) -> None:
        for client in self.forget:
            if client >= self.clients:
                raise ValueError(
                    f"forget = {list(self.forget)}: at most {self.clients - 1}, the last of "
                    f"clients = {self.clients}"
                )
        if len(set(self.forget)) == self.clients:
            raise ValueError(f"forget = {list(self.forget)}: at least 1 client must stay")

    def _check_fit(self) -> None:
        """Refuse an aggregator that has nothing to learn from, or what clients were trained on."""
        where = f"aggregator = {self.aggregator.name!r}"
        training = self.aggregator_training
        if self.aggregator.name in TRAINED_AGGREGATORS and training is None:
            raise ValueError(f"aggregator_training = null: {where} needs federated or proxy")
        if self.aggregator.name in TRAINED_AGGREGATORS and training is not None:
            self._check_training(training)
        if training is not None and training.name == "proxy" and self.aggregator.name != "voting":
            if not self.data.server_validation:
                raise ValueError(
                    "data.server_validation = 0: aggregator_training = proxy needs at least 1 "
                    "sample"
                )
            return
        if not self.aggregator_fraction or self.local_fraction == 1.0:
            raise ValueError(
                f"aggregator_fraction = {self.aggregator_fraction}, local_fraction = "
                f"{self.local_fraction}: {where} needs samples that no client's model was trained "
                "on; set aggregator_fraction above 0 and local_fraction to null"
            )
        if self.start is not None:
            raise ValueError(
                f"start = {self.start!r}: {where} needs samples that no client's model was trained "
                "on, and what they start from may have been"
            )

    def _check_distillation(self) -> None:
        if self.server is None:
            raise ValueError("server = null: distillation needs the server's settings")
        if self.public.name == "held_out" and not self.data.held_out:
            raise ValueError("data.held_out = 0: public = held_out needs at least 1 sample")
        if self.server.drop_worst != "none":
            raise ValueError(
                f"server.drop_worst = {self.server.drop_worst!r}: only for federated training"
            )
        if self.server.early_stopping is not None and not self.data.server_validation:
            raise ValueError(
                "data.server_validation = 0: server.early_stopping needs at least 1 sample"
            )

    def _check_training(self, training: FederatedRounds | ProxySet) -> None:
        left = self.clients - len(set(self.forget))
        if training.name == "federated" and (training.participants or 1) > left:
            raise ValueError(
                f"aggregator_training.participants = {training.participants}: at most {left}, the "
                "clients that are not forgotten"
            )
        if training.early_stopping is not None and not self.validation:
            raise ValueError("validation = 0: aggregator_training.early_stopping needs more than 0")
