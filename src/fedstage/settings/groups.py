"""Groups: which participants train which global model, and what a plan of them is drawn by."""

from collections.abc import Iterator
from math import isclose
from typing import Annotated, Literal

from pydantic import Field

from fedstage.protocol.groups import client_groups, head_of, models_of
from fedstage.settings.base import ByName, ClientCount, Count, Positive, Probability, Seed, Settings
from fedstage.settings.models import Model


class Synchronised(Settings):
    """Every participant starts from the models of the previous round."""

    name: Literal["none"]


class Stale(Settings):
    """Participants may start from older models."""


class Cyclic(Stale):
    """All participants of a round have the same delay; the given delays take turns.

    Round t has delay number (t - 1) modulo the number of delays. Delays of 0 and 1 in turn are the
    alternating stragglers of buffered distillation.
    """

    name: Literal["cyclic"]
    delays: Annotated[tuple[Count, ...], Field(strict=False, min_length=1)]
    """Delays, in rounds, in the order in which rounds have them."""


class Never(Stale):
    """No participant is ever synchronised: each starts from the models of round 0."""

    name: Literal["never"]


class Random(Stale):
    """Each participant draws its delay in each round."""

    name: Literal["random"]
    probabilities: Annotated[tuple[Probability, ...], Field(strict=False, min_length=1)]
    """Probabilities of delays of 0, 1, 2, ... rounds."""

    def _faults(self) -> Iterator[str]:
        if not isclose(sum(self.probabilities), 1.0, abs_tol=1e-9):
            yield f"probabilities: sum to {sum(self.probabilities):g}: must sum to 1"


Staleness = ByName[Synchronised | Cyclic | Never | Random]


class Delays(Settings):
    """The staleness of a plan of participants, and whether stale participants are absent."""

    staleness: Staleness = Synchronised(name="none")
    withdraw_stale: bool = False


class Groups(Settings):
    """Which clients participate in a round, and which global model each participant trains."""

    clients: ClientCount
    """Number of clients."""
    participants: ClientCount
    """Number of participants per round."""
    participation: Literal["uniform", "by_samples", "in_turn", "poisson"] = "uniform"
    """How participants are chosen: drawn uniformly; drawn in proportion to their samples; in turn,
    in the order of their numbers; or each client independently with probability `participants` /
    `clients`, so that rounds have `participants` on average (`poisson`).
    """
    staleness: Staleness = Synchronised(name="none")
    """Delays of participants: how many rounds older their starting models are than the previous
    round's. By default there are no delays.
    """
    withdraw_stale: bool = False
    """Whether participants that would start from older models are absent."""
    model: Model
    """Architecture of the main model, which is group 0's."""
    global_models: ClientCount = 1
    """Number of global models, K."""
    architectures: Annotated[tuple[Model, ...], Field(strict=False)] = ()
    """Architectures of groups 0 to K-1; by default all have `model`."""
    client_groups: Literal["by_index", "drawn"] = "by_index"
    """Group of a participant: by its index, in equal shares, or the group that its client drew
    uniformly, once, before training.
    """
    server_model: bool = False
    """Whether the main model is the server's, so that no client has it."""
    head_sharing: bool = False
    """Whether the main model takes the mean of the participants' heads before it is distilled, and
    all other models take its head afterwards.
    """

    def _faults(self) -> Iterator[str]:
        if self.participants > self.clients:
            yield f"participants = {self.participants}: at most clients = {self.clients}"
        if self.server_model and self.global_models == 1:
            yield (
                "global_models = 1: at least 2 with server_model = true, because no client trains "
                "the first"
            )
        for model in models_of(self):
            if model.more_outputs:
                yield f"model.more_outputs = {model.more_outputs}: only for clients of one shot"
        groups = len(client_groups(self))
        if self.client_groups == "by_index" and self.participants < groups:
            needed = f"{groups}" if self.server_model else f"global_models = {groups}"
            trained = " that clients train" if self.server_model else ""
            yield (
                f"participants = {self.participants}: at least {needed}, one for each group"
                f"{trained}"
            )
        if self.participation == "poisson":
            yield from self._check_poisson()
        if self.architectures:
            yield from self._check_architectures()
        if self.head_sharing:
            yield from self._check_head_sharing()

    def _check_poisson(self) -> Iterator[str]:
        if len(client_groups(self)) > 1:
            yield (
                f"global_models = {self.global_models}: a single group that clients train with "
                "participation = poisson, by which their number is drawn"
            )
        if self.staleness.name != "none":
            yield f"staleness = {self.staleness.name!r}: must be none with participation = poisson"

    def _check_architectures(self) -> Iterator[str]:
        if len(self.architectures) != self.global_models:
            yield (
                f"architectures: {len(self.architectures)} of them: must be global_models = "
                f"{self.global_models}, one for each group"
            )
        first = self.architectures[0]
        if first != self.model:
            yield f"architectures.0 = {first.name!r}: must be model, the main one's"

    def _check_head_sharing(self) -> Iterator[str]:
        for model in dict.fromkeys(models_of(self)):
            if head_of(model) is None or head_of(model) != head_of(self.model):
                yield (
                    f"model = {model.name!r}: head_sharing needs the same head in all models, and "
                    f"{_described(model)}, where that of model = {self.model.name!r} has "
                    f"{_described(self.model)}"
                )


def _described(model: Model) -> str:
    head = head_of(model)
    return "no head" if head is None else f"head = {head.model_dump()}"


class PlanSettings(Settings):
    """The part of a run's settings that determines the participants of each round.

    `groups` is the number of groups if each client draws its group once, before training.
    """

    clients: ClientCount
    participants: ClientCount
    participation: str
    groups: Positive | None = None
    delays: Delays | None = None
    seed: Seed
