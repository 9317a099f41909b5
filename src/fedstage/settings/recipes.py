"""Recipes of federated training, and of training without federation."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field

from fedstage.protocol.groups import (
    client_groups,
    client_models,
    group_participants,
    has_batch_norm,
    head_of,
    models_of,
)
from fedstage.protocol.server import has_factors
from fedstage.protocol.teaching import is_taught, reads_public
from fedstage.settings.aggregation import Aggregation, check_number, faults_of_secure
from fedstage.settings.base import (
    ClientCount,
    Fraction,
    Seed,
    Settings,
    WeightsFile,
)
from fedstage.settings.compatibility import clashes
from fedstage.settings.data import Data, HeldOut, Public
from fedstage.settings.ensembles import EnsembleTrainer, GlobalTrainer
from fedstage.settings.generators import RoundGenerator
from fedstage.settings.groups import Groups
from fedstage.settings.local_training import (
    Compression,
    FedAvg,
    LocalTrainer,
    PersonalParts,
    Uncompressed,
)
from fedstage.settings.models import Head, Model, with_default
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
from fedstage.settings.samples import (
    check_clients,
    check_maps,
    check_models,
    check_parts,
    check_public,
)
from fedstage.settings.server import Server
from fedstage.settings.transfers import KlTransfer, Transfer


class Recipe(Groups):
    """A training recipe: exactly the settings that determine the weights of a federated run.

    It therefore has no number of rounds, evaluation or scheduling.
    """

    uses: ClassVar[Mapping[str, str]] = {
        "compression": "algorithm.exchange.compression",
        "staleness": "algorithm.aggregation.asynchronous",
    }
    data: Data
    """The data set."""
    partition: Partition
    """How training samples are distributed to clients."""
    validation: Fraction = 0.0
    """Share of each client's samples that is set aside for validation."""
    core: Core | None = None
    """Labelled training samples of the server; by default none."""
    start: WeightsFile | None = None
    """Final model of another recipe from which groups start; by default they start from initial
    models.
    """
    start_of: Literal["all", "server"] = "all"
    """Which groups start from `start`: all, or only the group of the server's model."""
    local: LocalTrainer = FedAvg(name="fedavg")
    """How participants train; by default as in FedAvg."""
    client: Client
    """Epochs, batches, optimiser and loss of participants."""
    personal: PersonalParts | None = None
    """Parts of models that stay with each client; by default none."""
    compression: Compression = Uncompressed(name="none")
    """How updates are compressed; by default not at all."""
    aggregation: Aggregation = Aggregation()
    """How clients' models are combined into one."""
    privacy: Privacy | None = None
    """Noise that hides clients, or their samples; by default none."""
    ensemble: EnsembleTrainer | None = None
    """Ensemble that teaches students, or clients; by default none."""
    global_trainer: GlobalTrainer | None = Field(default=None, alias="global")
    """Which global models are students; by default none."""
    distillation: Transfer = KlTransfer(name="kl")
    """What students, or clients, learn from the ensemble."""
    server: Server | None = None
    """How students train."""
    public: Public = HeldOut(name="held_out")
    """Samples on which students are compared with the ensemble."""
    generator: RoundGenerator | None = None
    """Generator of images in place of public ones; by default none."""
    on_divergence: Literal["stop", "drop"] = "stop"
    """What happens if a training diverges: the run stops, or the update is dropped."""
    numerics: Numerics = Numerics()
    """How numbers are computed."""
    seed: Seed
    """Seed of all random draws."""

    def _completed(self) -> Self:
        """Give models without a head the default head of the part that needs one."""
        if not (self.head_sharing or self.local.needs_head):
            return self
        head = Head() if self.head_sharing else self.local.default_head
        changed = {
            "model": with_default(self.model, head),
            "architectures": tuple(with_default(model, head) for model in self.architectures),
        }
        return self.model_copy(update=changed)

    def _read(self) -> Self:
        """Return these settings, with what nothing reads at its default."""
        unread: dict[str, Any] = {}
        if not any(map(has_batch_norm, models_of(self))):
            unread["aggregation"] = self.aggregation.model_copy(update={"batch_norm": "average"})
        if not is_taught(self):
            kl = KlTransfer(name="kl")
            unread |= {"generator": None, "ensemble": None, "distillation": kl}
            unread |= {} if self.local.exchanges == "features" else {"server": None}
        return self.model_copy(update=unread)

    def _faults(self) -> Iterator[str]:
        yield from super()._faults()
        if self.client.batches == "continued" and self.participants != self.clients:
            yield (
                f"participants = {self.participants}: must be clients = {self.clients} with "
                "client.batches = continued, so that every client takes the steps of every round"
            )
        yield from check_clients(self.data, self.partition)
        exchanges, where = self.local.exchanges, f"local = {self.local.name}"
        # A server's model that takes features does not see samples.
        models = client_models(self) if exchanges == "features" else models_of(self)
        yield from check_models(self.data, models, self.numerics)
        yield from clashes(self._read())
        keeping = exchanges != "weights"
        if keeping and self.client_groups == "by_index" and len(client_groups(self)) > 1:
            yield f"client_groups = 'by_index': must be drawn with {where}, or a single group"
        trainer = self.global_trainer
        apart = trainer is None or (trainer.name == "designated" and self.server_model)
        if exchanges == "logits" and not apart:
            yield f"global: must be designated, and server_model true, with {where}"
        for model in models_of(self) if self.local.needs_head else ():
            if head_of(model) is None:
                yield f"model = {model.name}: must be one that takes a head, with {where}"
        yield from check_number(self, self.aggregation.rule)
        yield from self._check_secure()
        yield from check_privacy(self)
        if reads_public(self):
            yield from check_public(self.data, self.public, self.core, self.generator)
        if exchanges == "features":
            yield from check_parts(where, self.model, models)
        if trainer and self.server and has_factors(self.server):
            yield from check_maps("server.factor_transfer", models_of(self))

    def _check_secure(self) -> Iterator[str]:
        secure = self.aggregation.secure
        if secure is None:
            return
        sizes = [len(group_participants(self, group)) for group in client_groups(self)]
        yield from faults_of_secure(secure, sizes)
        if self.aggregation.batch_norm == "average" and any(map(has_batch_norm, models_of(self))):
            yield (
                "aggregation.batch_norm = average: must be re_estimate with aggregation.secure, "
                "where no running statistics are sent"
            )


class LocalRecipe(Settings):
    """Training to the end without federation: each client alone, or all their data pooled.

    Alternatively, the server trains on its `core` alone.
    """

    uses: ClassVar[Mapping[str, str]] = OF_ONE_SHOT
    data: Data
    clients: ClientCount
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
    privacy: Privacy | None = None
    numerics: Numerics = Numerics()
    seed: Seed
