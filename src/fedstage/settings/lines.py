"""Federated lines, and training without federation."""

from collections import Counter
from typing import Annotated, Literal

from pydantic import Field, model_validator

from fedstage.settings.aggregation import Aggregation
from fedstage.settings.base import Fraction, Positive, Settings, WeightsFile
from fedstage.settings.data import Data, HeldOut, Public
from fedstage.settings.ensembles import EnsembleTrainer, GlobalTrainer
from fedstage.settings.local_training import Compression, FedAvg, LocalTrainer, Uncompressed
from fedstage.settings.models import Model, has_batch_norm
from fedstage.settings.numerics import Numerics
from fedstage.settings.optimisation import Client, Server, needs_validation
from fedstage.settings.partitions import Partition
from fedstage.settings.quantisation import NotQuantised, Quantisation
from fedstage.settings.samples import check_samples
from fedstage.settings.slots import slots_of, unbound_needed


class BoundClients(Settings):
    """So many clients that can have one architecture only, or any where none is named."""

    model: Model | None = None
    clients: Positive


class Line(Settings):
    """A training line: all that determines the weights of a federated run, and nothing else.

    Not in it: the number of rounds, what is evaluated, and how the work is scheduled. Where
    `global_models` does not divide `participants`, `remainder` goes to the groups from 0 on, one
    each, or to the main model's group. `architectures` are the models of groups 0 to K-1 where they
    are not all `model`, which is the main one's. `client_architectures` says from client 0 on to
    which of them clients are bound, who then take part in its groups only; all others in any. All
    groups start from `start`, what another line has ended in, or by default from initial models.
    """

    data: Data
    clients: Positive
    partition: Partition
    validation: Fraction = 0.0
    participants: Positive
    model: Model
    start: WeightsFile | None = None
    global_models: Positive = 1
    architectures: Annotated[tuple[Model, ...], Field(strict=False)] = ()
    client_architectures: Annotated[tuple[BoundClients, ...], Field(strict=False)] = ()
    remainder: Literal["spread", "main"] = "spread"
    local: LocalTrainer = FedAvg(name="fedavg")
    client: Client
    compression: Compression = Uncompressed(name="none")
    aggregation: Aggregation = Aggregation()
    ensemble: EnsembleTrainer | None = None
    global_trainer: GlobalTrainer | None = Field(default=None, alias="global")
    server: Server | None = None
    public: Public = HeldOut(name="held_out")
    on_divergence: Literal["stop", "drop"] = "stop"
    numerics: Numerics = Numerics()
    seed: int

    @model_validator(mode="after")
    def _consistent(self) -> "Line":
        if self.participants > self.clients:
            raise ValueError(
                f"participants = {self.participants}: at most clients = {self.clients}"
            )
        if self.participants < self.global_models:
            raise ValueError(
                f"participants = {self.participants}: at least global_models = "
                f"{self.global_models}, one for each group"
            )
        if self.client.batches == "continued" and self.participants != self.clients:
            raise ValueError(
                f"participants = {self.participants}: must be clients = {self.clients} with "
                "client.batches = continued, so that every client takes the steps of every round"
            )
        check_samples(self, models_of(self))
        if self.architectures:
            self._check_architectures()
        if self.client_architectures:
            self._check_client_architectures()
        if self.global_trainer is not None:
            self._check_distillation()
        if re_estimates(self) and self.public.name == "held_out" and not self.data.held_out:
            raise ValueError(
                "data.held_out = 0: aggregation.batch_norm = re_estimate with public = held_out "
                "needs at least 1 sample"
            )
        if self.local.name == "scaffold" and (
            self.client.optimiser != "sgd" or self.client.momentum
        ):
            raise ValueError(
                "local = scaffold: needs client.optimiser = sgd and client.momentum = 0, because "
                "its control variates are mean gradients"
            )
        if self.local.name == "fednova" and self.client.optimiser != "sgd":
            raise ValueError(
                "local = fednova: needs client.optimiser = sgd, because it counts the gradients in "
                "a client's change"
            )
        return self

    def _check_architectures(self) -> None:
        if len(self.architectures) != self.global_models:
            raise ValueError(
                f"architectures: {len(self.architectures)} of them: must be global_models = "
                f"{self.global_models}, one for each group"
            )
        if self.architectures[0] != self.model:
            raise ValueError(
                f"architectures.0 = {self.architectures[0].name!r}: must be model, the main one's"
            )
        if self.local.name == "scaffold" and self.local.control == "shared":
            raise ValueError("local.control = 'shared': only without architectures")

    def _check_client_architectures(self) -> None:
        slots = _slots_of_models(self)
        bound: Counter[Model | None] = Counter()
        for i, part in enumerate(self.client_architectures):
            if part.model is not None and part.model not in slots:
                known = ", ".join(dict.fromkeys(repr(model.name) for model in slots))
                raise ValueError(
                    f"client_architectures.{i}.model = {part.model.name!r}: must be an "
                    f"architecture of the line, settings included: {known}"
                )
            bound[part.model] += part.clients
        if bound.total() > self.clients:
            raise ValueError(
                f"client_architectures: {bound.total()} clients: at most clients = {self.clients}"
            )
        unbound = self.clients - sum(bound[model] for model in slots)
        needed = unbound_needed(slots, bound)
        if unbound < needed:
            short = ", ".join(
                f"{wanted} slots for {model.name!r} and {bound[model]} clients bound to it"
                for model, wanted in slots.items()
                if wanted > bound[model]
            )
            raise ValueError(
                f"client_architectures: {unbound} clients are bound to none: must be at least "
                f"{needed}, because a round has {short}"
            )

    def _check_distillation(self) -> None:
        if self.ensemble is None:
            raise ValueError(
                "ensemble = null: global needs clients, aggregated or bayesian as its teacher"
            )
        if self.server is None:
            raise ValueError("server = null: global needs the server's distillation settings")
        if self.public.name == "held_out" and not self.data.held_out:
            raise ValueError("data.held_out = 0: public = held_out needs at least 1 sample")
        if self.server.drop_worst != "none":
            self._check_drop_worst(f"server.drop_worst = {self.server.drop_worst!r}")
        if needs_validation(self.server) and not self.data.server_validation:
            raise ValueError(
                "data.server_validation = 0: server.early_stopping and server.drop_worst need at "
                "least 1 sample"
            )
        if self.compression.name == "stc" and self.compression.downstream:
            raise ValueError(
                "compression.downstream = true: only without global, for a distilled model is not "
                "the old one with a sparse change; set it to false"
            )

    def _check_drop_worst(self, where: str) -> None:
        """Refuse what would make the average of who is kept another one than the aggregation's."""
        if self.ensemble is None or self.ensemble.name != "clients":
            raise ValueError(f"{where}: only for ensemble = clients, whose members it judges")
        how = self.aggregation
        if how.learning_rate != 1.0:
            raise ValueError(f"{where}: only for aggregation.learning_rate = 1")
        if how.server_optimizer.name != "average":
            raise ValueError(f"{where}: only for aggregation.server_optimizer = average")
        if self.local.name == "fednova":
            raise ValueError(f"{where}: not for local = fednova, which takes no plain average")
        if how.batch_norm != "average" and any(map(has_batch_norm, models_of(self))):
            raise ValueError(f"{where}: only for aggregation.batch_norm = average")


def re_estimates(line: Line) -> bool:
    """Whether running statistics are estimated anew, on public images, in every aggregation."""
    estimated = line.aggregation.batch_norm == "re_estimate"
    return estimated and any(map(has_batch_norm, models_of(line)))


def models_of(line: Line) -> tuple[Model, ...]:
    """Return the architectures of a line, the main one first, some perhaps several times."""
    return line.architectures or (line.model,)


def _slots_of_models(line: Line) -> dict[Model, int]:
    """Return how many slots of a round each architecture has."""
    slots: Counter[Model] = Counter()
    for group in range(line.global_models):
        model = line.architectures[group] if line.architectures else line.model
        slots[model] += len(slots_of(line.participants, line.global_models, line.remainder, group))
    return slots


class LocalLine(Settings):
    """Training without federation, to the end: each client alone, or all their data pooled.

    `client` states the whole length (for a comparison: rounds x local epochs). Of each client's
    samples, after those that validate, `aggregator_fraction` are not trained on: an aggregator is,
    in one-shot federated learning. `architectures` are the clients' models where they are not all
    `model`, in turn. With `initialisation` = ``own`` client n starts from weights of its own, those
    of the initial model of group n; with a `start` all start from what another line has ended in.
    With a `quantisation` quantised models are scored; the same are trained.
    """

    data: Data
    clients: Positive
    partition: Partition
    validation: Fraction = 0.0
    aggregator_fraction: Fraction = 0.0
    pooled: bool = False
    model: Model
    architectures: Annotated[tuple[Model, ...], Field(strict=False)] = ()
    initialisation: Literal["common", "own"] = "common"
    start: WeightsFile | None = None
    quantisation: Quantisation = NotQuantised(name="none")
    client: Client
    numerics: Numerics = Numerics()
    seed: int
