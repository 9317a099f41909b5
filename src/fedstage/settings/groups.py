"""Groups: who trains which global model."""

from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from fedstage.settings.base import Positive, Settings
from fedstage.settings.models import Model, head_of
from fedstage.settings.slots import slots_of, unbound_needed
from fedstage.settings.staleness import Staleness, Synchronised
from fedstage.settings.traits import Lacks, Needs, Trait


class BoundClients(Settings):
    """The number of clients that are bound to one architecture, or to none."""

    model: Model | None = None
    clients: Positive


class Groups(Settings):
    """Who takes part in a round, and which of the global models each participant trains.

    Participants are drawn `uniform`, or in proportion to their samples, or come `in_turn`, in the
    order of their numbers. By `staleness` they start from models that are several rounds old; with
    `withdraw_stale` such participants stay away. `slots` of a round decide
    the group of a participant: equal shares and, if `global_models` does not divide `participants`,
    a `remainder` that goes to the first groups, one each, or to the main model's group. Or each
    client's group is `drawn` once, uniformly, before training, and a round's participants are
    drawn whatever their groups are.

    `architectures` are the models of groups 0 to K-1, unless all are `model`, the main one, which
    is group 0's. `client_architectures` binds clients, from client 0 on, to one of them: they take
    part in its groups only. The main model may be the server's (`server_model`), which no client
    has. With `head_transfer` it takes the mean of the participants' heads before it is distilled,
    and all other models take its head thereafter.
    """

    needs: ClassVar[Needs] = {"head_transfer": (Trait.SERVER_MODEL, Trait.WEIGHTS, Trait.AVERAGE)}
    lacks: ClassVar[Lacks] = {
        "no server_model": ("", Trait.SERVER_MODEL),
        "client_groups=drawn": ("by which their number is drawn", Trait.ALL_SLOTS),
        "architectures": ("", Trait.ALIKE),
        "head_transfer": (
            "which reaches all models in every round",
            Trait.MEMORYLESS,
            Trait.PLAIN_AVERAGE,
            Trait.ONLY_AVERAGED,
            Trait.ALIKE,
        ),
    }
    clients: Positive
    participants: Positive
    participation: Literal["uniform", "by_samples", "in_turn"] = "uniform"
    staleness: Staleness = Synchronised(name="none")
    withdraw_stale: bool = False
    model: Model
    global_models: Positive = 1
    architectures: Annotated[tuple[Model, ...], Field(strict=False)] = ()
    client_architectures: Annotated[tuple[BoundClients, ...], Field(strict=False)] = ()
    client_groups: Literal["slots", "drawn"] = "slots"
    server_model: bool = False
    head_transfer: bool = False
    remainder: Literal["spread", "main"] = "spread"

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
                yield (
                    f"model.more_outputs = {model.more_outputs}: only for clients of one shot, "
                    "whose votes may read them"
                )
        groups = len(client_groups(self))
        if self.client_groups == "slots" and self.participants < groups:
            needed = f"{groups}" if self.server_model else f"global_models = {groups}"
            trained = " that clients train" if self.server_model else ""
            yield (
                f"participants = {self.participants}: at least {needed}, one for each group"
                f"{trained}"
            )
        if self.architectures:
            yield from self._check_architectures()
        if self.head_transfer:
            yield from self._check_head_transfer()
        if self.client_architectures:
            yield from self._check_client_architectures()

    def _check_architectures(self) -> Iterator[str]:
        if len(self.architectures) != self.global_models:
            yield (
                f"architectures: {len(self.architectures)} of them: must be global_models = "
                f"{self.global_models}, one for each group"
            )
        if self.architectures[0] != self.model:
            yield (
                f"architectures.0 = {self.architectures[0].name!r}: must be model, the main one's"
            )

    def _check_head_transfer(self) -> Iterator[str]:
        for model in dict.fromkeys(models_of(self)):
            if head_of(model) is None or head_of(model) != head_of(self.model):
                yield (
                    f"model = {model.name!r}: head_transfer needs the same head in all models, and "
                    f"{_described(model)}, where that of model = {self.model.name!r} has "
                    f"{_described(self.model)}"
                )

    def _check_client_architectures(self) -> Iterator[str]:
        if self.participation != "uniform":
            yield (
                f"participation = {self.participation!r}: not with client_architectures, which "
                "leave each slot to some of the clients"
            )
        if self.client_groups == "drawn":
            yield "client_groups = 'drawn': not with client_architectures, which say it"
        slots: Counter[Model] = Counter()
        for group in client_groups(self):
            slots[model_of(self, group)] += len(group_slots(self, group))
        bound: Counter[Model | None] = Counter()
        for i, part in enumerate(self.client_architectures):
            if part.model is not None and part.model not in slots:
                known = ", ".join(dict.fromkeys(repr(model.name) for model in slots))
                yield (
                    f"client_architectures.{i}.model = {part.model.name!r}: must be an "
                    f"architecture of the line, settings included: {known}"
                )
            bound[part.model] += part.clients
        if bound.total() > self.clients:
            yield (
                f"client_architectures: {bound.total()} clients: at most clients = {self.clients}"
            )
        unbound = self.clients - sum(bound[model] for model in slots)
        needed = unbound_needed(slots, bound)
        if unbound < needed:
            short = ", ".join(
                f"{count} slots for {model.name!r} and {bound[model]} clients bound to it"
                for model, count in slots.items()
                if count > bound[model]
            )
            yield (
                f"client_architectures: {unbound} clients are bound to none: must be at least "
                f"{needed}, because a round has {short}"
            )


def _described(model: Model) -> str:
    head = head_of(model)
    return "no head" if head is None else f"head = {head.model_dump()}"


def models_of(line: Groups) -> tuple[Model, ...]:
    """Return the architectures of a line, the main one first; they may repeat."""
    return line.architectures or (line.model,)


def model_of(line: Groups, group: int) -> Model:
    """Return the architecture of a group."""
    return line.architectures[group] if line.architectures else line.model


def client_groups(line: Groups) -> range:
    """Return the groups that clients train: all, but for the server's."""
    return range(int(line.server_model), line.global_models)


@cache
def group_slots(line: Groups, group: int) -> range:
    """Return the slots of a round that train a group; the server's group has none.

    Where each client has a group of its own, every group has as many slots as there are
    participants, and most of them stay empty.
    """
    groups = client_groups(line)
    if group not in groups:
        return range(0)
    number, size = group - groups.start, line.participants
    if line.client_groups == "drawn":
        return range(number * size, (number + 1) * size)
    return slots_of(size, len(groups), line.remainder, number)


def client_models(settings: Groups) -> tuple[Model, ...]:
    """Return the architectures of groups that clients train, without repetitions."""
    groups = client_groups(settings)
    return tuple(dict.fromkeys(model_of(settings, group) for group in groups))
