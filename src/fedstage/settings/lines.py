"""Lines of federated training, and of training without federation."""

from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from fedstage.settings.aggregation import Aggregation
from fedstage.settings.base import Fraction, Positive, Seed, Settings, WeightsFile
from fedstage.settings.data import Data
from fedstage.settings.ensembles import EnsembleTrainer, GlobalTrainer
from fedstage.settings.generators import RoundGenerator
from fedstage.settings.groups import Groups, client_groups, client_models, models_of
from fedstage.settings.known import check_known
from fedstage.settings.local_training import (
    Compression,
    FedAvg,
    LocalTrainer,
    Scaffold,
    Uncompressed,
)
from fedstage.settings.model_rules import check_rule
from fedstage.settings.models import Model, has_batch_norm, head_of
from fedstage.settings.numerics import Numerics
from fedstage.settings.optimisation import Client
from fedstage.settings.partitions import Core, Partition
from fedstage.settings.prototypes import Prototypes
from fedstage.settings.public import HeldOut, Public
from fedstage.settings.quantisation import NotQuantised, Quantisation
from fedstage.settings.samples import check_clients, check_parts, check_public, check_samples
from fedstage.settings.server import Server, needs_validation
from fedstage.settings.teaching import (
    OF_ROUNDS,
    EnsembleTeaching,
    changed,
    check_drop_worst,
    check_generator,
    check_odds,
    check_selection,
    check_teaching,
)
from fedstage.settings.transfers import KlTransfer, Transfer
from fedstage.settings.unknown import OF_ONE_SHOT, Unknown


class Line(Groups):
    """A training line: all that determines the weights of a federated run, and nothing else.

    So it has no number of rounds, evaluation or scheduling. All groups, or that of the server's
    model only (`start_of`), start from the final model of another line (`start`), by default from
    initial models. Students learn from the ensemble what `distillation` says, by default its
    probabilities, on public images or those that a `generator` makes.
    """

    uses: ClassVar[Mapping[str, str]] = {
        "compression": "algorithm.exchange.compression",
        "staleness": "algorithm.aggregation.asynchronous",
    }
    data: Data
    partition: Partition
    validation: Fraction = 0.0
    core: Core | None = None
    start: WeightsFile | None = None
    start_of: Literal["all", "server"] = "all"
    local: LocalTrainer = FedAvg(name="fedavg")
    client: Client
    compression: Compression = Uncompressed(name="none")
    aggregation: Aggregation = Aggregation()
    ensemble: EnsembleTrainer | None = None
    global_trainer: GlobalTrainer | None = Field(default=None, alias="global")
    distillation: Transfer = KlTransfer(name="kl")
    server: Server | None = None
    public: Public = HeldOut(name="held_out")
    generator: RoundGenerator | None = None
    on_divergence: Literal["stop", "drop"] = "stop"
    numerics: Numerics = Numerics()
    seed: Seed

    @property
    def teaching(self) -> EnsembleTeaching | None:
        """What students, or clients, learn from an ensemble, if any do."""
        taught = self.global_trainer is not None or self.local.exchanges == "logits"
        if not taught or self.ensemble is None or self.server is None:
            return None
        learnt = (self.server, self.distillation, self.public)
        return EnsembleTeaching(*learnt, self.ensemble, self.global_trainer, self.generator)

    def _faults(self) -> Iterator[str]:
        yield from super()._faults()
        if self.client.batches == "continued" and self.participants != self.clients:
            yield (
                f"participants = {self.participants}: must be clients = {self.clients} with "
                "client.batches = continued, so that every client takes the steps of every round"
            )
        if self.start_of == "server" and not self.server_model:
            yield "start_of = 'server': needs server_model = true, a model that no client trains"
        yield from check_clients(self.data, self.partition)
        # A server's model that takes features sees no samples.
        models = client_models(self) if self.local.exchanges == "features" else models_of(self)
        yield from check_samples(self.data, models, self.client, self.server, self.numerics)
        divided = (self.data, self.clients, self.partition, self.core)
        yield from check_known(*divided, models_of(self), self.client)
        if self.ensemble is not None and self.ensemble.name == "odds":
            yield from check_odds(self)
        if self.global_trainer is not None:
            yield from self._check_distillation()
        changed = self.global_trainer is not None or self.head_transfer
        if self.compression.name == "stc" and self.compression.downstream and changed:
            yield (
                "compression.downstream = true: only without global and head_transfer, for then a "
                "model is not the old one with a sparse change; set it to false"
            )
        if re_estimates(self) and self.public.name == "generated":
            yield (
                "public = generated: not with aggregation.batch_norm = re_estimate, because no "
                "images are there before the students learn"
            )
        if re_estimates(self) and self.public.name == "held_out" and not self.data.holds_out:
            yield (
                "data.held_out = 0: aggregation.batch_norm = re_estimate with public = held_out "
                "needs at least 1 sample"
            )
        if self.aggregation.rule.name != "average":
            yield from check_rule(self)
        if self.staleness.name != "none":
            yield from self._check_staleness(f"staleness = {self.staleness.name!r}")
        if self.local.name == "scaffold":
            yield from self._check_scaffold(self.local)
        if self.local.name == "fednova" and self.client.optimiser != "sgd":
            yield (
                "local = fednova: needs client.optimiser = sgd, because it counts the gradients in "
                "a client's change"
            )
        if self.local.needs_head:
            yield from self._check_heads(f"local = {self.local.name}")
        if self.local.own_loss and self.numerics.compile:
            yield (
                f"numerics.compile = true: not with local = {self.local.name}, whose loss is "
                "its own and has no compiled code"
            )
        hears = getattr(self.local, "teacher", None) == "server"
        yield from check_selection(self.distillation, self.public if hears else None)
        kept = self.aggregation.batch_norm == "local"
        statistics = not kept or not any(map(has_batch_norm, models_of(self)))
        yield from self.local.check_history(statistics, self.data.server_validation)
        if self.local.exchanges == "logits":
            yield from self._check_exchange_of_logits()
        if self.local.exchanges == "features":
            yield from self._check_exchange_of_features()

    def _check_staleness(self, where: str) -> Iterator[str]:
        """Yield what does not go with participants that start from older models."""
        local, compression = self.local, self.compression
        if local.exchanges != "weights":
            yield f"{where}: not with local = {local.name}, whose clients exchange no weights"
        if local.keeps_state:
            yield f"{where}: not with local = {local.name}, which keeps state between rounds"
        if compression.name == "stc" and (compression.residuals or compression.downstream):
            yield (
                f"{where}: not with compression.residuals or compression.downstream, which go on "
                "from one round to the next"
            )
        if self.aggregation.batch_norm == "local" and any(map(has_batch_norm, models_of(self))):
            yield f"{where}: not with aggregation.batch_norm = local, which clients keep"
        if self.head_transfer:
            yield f"{where}: not with head_transfer, which reaches all models in every round"

    def _check_heads(self, where: str) -> Iterator[str]:
        for model in dict.fromkeys(models_of(self)):
            if head_of(model) is None:
                yield (
                    f"{where}: reads representations, and model = {model.name!r} has no head, "
                    "such as MOON's model.head = {hidden: 128, width: 256, relu: false}"
                )

    def _check_exchange_of_logits(self) -> Iterator[str]:
        where = f"local = {self.local.name}"
        if self.ensemble is None or self.ensemble.members != ("clients",):
            yield f"{where}: needs ensemble = clients, from which clients learn"
        if self.server is None:
            yield f"server = null: {where} needs its settings, with which clients learn, too"
            return
        if self.generator is not None:
            yield f"generator = {self.generator.name}: not with {where}, whose clients need images"
        yield from check_public(self.data, self.public, self.core)
        if needs_validation(self.server) or self.server.swa is not None:
            yield f"{where}: not with server.early_stopping, server.drop_worst or server.swa"
        for key in changed(self.server, (*OF_ROUNDS, "labels", "moving_average")):
            yield f"server.{key}: not with {where}, whose clients learn from logits"
        trainer = self.global_trainer
        if trainer is not None and (trainer.name == "basic" or not self.server_model):
            yield f"{where}: global only with designated and server_model = true, the one student"
        yield from self._check_that_no_weights_travel(where)

    def _check_exchange_of_features(self) -> Iterator[str]:
        where = f"local = {self.local.name}"
        if not self.server_model:
            yield f"server_model = false: {where} needs true, for a model that takes features"
        yield from check_parts(where, self.model, client_models(self))
        if self.server is None:
            yield f"server = null: {where} needs its settings, with which its model is trained"
            return
        kept = ("early_stopping", "drop_worst", "swa", "moving_average")
        seen = ("samples_a_round", "augmentation", "labels", "buffer", *OF_ROUNDS)
        for key in changed(self.server, (*kept, *seen)):
            yield f"server.{key}: not with {where}, whose server learns from clients' features"
        if self.global_trainer is not None:
            yield f"{where}: not with global, because the server learns from clients' features"
        yield from self._check_that_no_weights_travel(where)

    def _check_that_no_weights_travel(self, where: str) -> Iterator[str]:
        if self.client_groups == "slots" and len(client_groups(self)) > 1:
            yield (
                f"client_groups = 'slots': {where} needs 'drawn' or a single group that clients "
                "train, because each client keeps its model"
            )
        if self.compression.name != "none" or self.head_transfer:
            yield f"{where}: not with compression or head_transfer, because no weights travel"
        if any(map(has_batch_norm, models_of(self))) and self.aggregation.batch_norm != "average":
            yield f"{where}: only for aggregation.batch_norm = average, because nothing is averaged"

    def _check_scaffold(self, local: Scaffold) -> Iterator[str]:
        if self.client.optimiser != "sgd" or self.client.momentum:
            yield (
                "local = scaffold: needs client.optimiser = sgd and client.momentum = 0, because "
                "its control variates are mean gradients"
            )
        if local.control == "shared":
            if self.architectures:
                yield "local.control = 'shared': only without architectures"
            if self.head_transfer:
                yield "local.control = 'shared': only without head_transfer"
        if self.client_groups == "drawn":
            yield (
                "local = scaffold: not with client_groups = drawn, because the server's control "
                "variate is a mean over a group's clients, whose number is drawn"
            )

    def _check_distillation(self) -> Iterator[str]:
        if self.ensemble is None:
            yield "ensemble = null: global needs clients, aggregated or bayesian as its teacher"
        if self.server is None:
            yield "server = null: global needs the server's distillation settings"
            return
        yield from check_public(self.data, self.public, self.core, self.generator)
        if self.generator is not None:
            yield from check_generator(self.generator, self)
        if self.global_trainer is not None:
            public, models = self.public, models_of(self)
            parts = (self.global_trainer, self.ensemble, public, models, self.numerics)
            yield from check_teaching(self.server, *parts)
        if self.server.drop_worst != "none":
            yield from check_drop_worst(self, f"server.drop_worst = {self.server.drop_worst!r}")
        if needs_validation(self.server) and not self.data.server_validation:
            yield (
                "data.server_validation = 0: server.early_stopping and server.drop_worst need at "
                "least 1 sample"
            )


def re_estimates(line: Line) -> bool:
    """Whether every aggregation re-estimates running statistics on public images."""
    return line.aggregation.batch_norm == "re_estimate" and any(
        map(has_batch_norm, models_of(line))
    )


class LocalLine(Settings):
    """Training without federation, to the end: each client alone, or all their data pooled.

    Or the server trains on its `core` alone (`on_core`).

    `client` has the whole length (for a comparison: rounds x local epochs). Of each client's
    samples, less the validation samples, `aggregator_fraction` are left to train a one-shot
    aggregator. `architectures` are dealt out to clients in turn, unless all are `model`. With
    `initialisation` = ``own`` client n starts from the initial model of group n; with a `start` all
    start from that of another line. `quantisation` affects scoring, not training.
    """

    uses: ClassVar[Mapping[str, str]] = OF_ONE_SHOT
    data: Data
    clients: Positive
    partition: Partition
    validation: Fraction = 0.0
    aggregator_fraction: Fraction = 0.0
    core: Core | None = None
    pooled: bool = False
    on_core: bool = False
    model: Model
    architectures: Annotated[tuple[Model, ...], Field(strict=False)] = ()
    initialisation: Literal["common", "own"] = "common"
    start: WeightsFile | None = None
    quantisation: Quantisation = NotQuantised(name="none")
    unknown: Unknown | None = None
    prototypes: Prototypes | None = None
    client: Client
    numerics: Numerics = Numerics()
    seed: Seed
