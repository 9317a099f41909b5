"""Configurations of clients that train to the end, derived from others; and what a run reads."""

from functools import cache
from typing import Any

from fedstage.plan.restriction import interned
from fedstage.settings.equivalences import IN_ONE_TRAINING, dealt_models, left_out, simplest
from fedstage.settings.lines import Line, LocalLine
from fedstage.settings.models import Model
from fedstage.settings.one_shot import OneShot, OneShotLine
from fedstage.settings.optimisation import Client
from fedstage.settings.quantisation import NotQuantised

#: The training of clients whose models nobody reads.
NO_CLIENT = Client(epochs=1, batch_size=1, learning_rate=1.0)

_UNQUANTISED = NotQuantised(name="none")

#: Fields of local lines that federated lines lack, or that have another meaning there.
_OF_CLIENTS = (
    "aggregator_fraction", "initialisation", "architectures", "quantisation", "pooled", "on_core",
    "unknown", "prototypes",
)  # fmt: skip


def alone(
    line: Line,
    rounds: int,
    *,
    pooled: bool = False,
    on_core: bool = False,
    own: OneShot | None = None,
) -> LocalLine:
    """Return the unfederated counterpart of a line: with all local epochs (steps) of `rounds`.

    The schedule of a round stretches over the whole length; `round_decay` and `batches` do not
    apply. Clients that train alone have their `own` samples, starts and quantisation.
    """
    client = line.client
    length: dict[str, Any] = dict(IN_ONE_TRAINING)
    for unit in ("epochs", "steps"):
        if (count := getattr(client, unit)) is not None:
            length[unit] = count * rounds
    shared = {
        name: getattr(line, name) for name in LocalLine.model_fields if name not in _OF_CLIENTS
    }
    shared["client"] = Client.model_validate(client.model_dump() | length)
    shared["numerics"] = line.numerics.model_copy(update={"logits": "fp32"})
    if own is not None and not (pooled or on_core):
        shared["aggregator_fraction"] = left_out(own)
        shared["initialisation"] = own.initialisation
        shared["quantisation"] = own.quantisation
        shared["unknown"], shared["prototypes"] = own.unknown, own.prototypes
    return LocalLine.model_construct(**shared, pooled=pooled, on_core=on_core)


@cache
def local_line(line: OneShotLine) -> LocalLine:
    """Return the line of a one-shot line's client models, whichever aggregator reads them.

    Clients that train on all their samples share models with a line without aggregator samples.
    """
    simple = simplest(line)
    names = LocalLine.model_fields.keys() - {"pooled", "on_core", "quantisation"}
    own = {name: value for name, value in simple.__dict__.items() if name in names}
    return interned(LocalLine.model_construct(**own, quantisation=_UNQUANTISED))


@cache
def unquantised(line: LocalLine) -> LocalLine:
    """Return the line of the trained models, before quantisation."""
    return interned(line.model_copy(update={"quantisation": _UNQUANTISED}))


@cache
def quantised_line(line: OneShotLine) -> LocalLine:
    """Return the line of the aggregated client models, with their quantisation."""
    precise = local_line(line).model_copy(update={"quantisation": line.quantisation})
    return interned(precise)


def trained_on(line: LocalLine) -> str | None:
    """Return what a single model is trained on: ``pooled`` or ``core``; None if each client is."""
    return "pooled" if line.pooled else "core" if line.on_core else None


def client_model(line: LocalLine | OneShotLine, client: int) -> Model:
    """Return the architecture of a client, with the outputs that its training needs."""
    model = dealt_models(line)[client]
    learnt = line.unknown or line.prototypes
    if learnt is None:
        return model
    return model.model_copy(update={"more_outputs": learnt.more_outputs})


def members(line: OneShotLine) -> list[int]:
    """Return the clients whose models are aggregated, or chosen from for that."""
    return [client for client in range(line.clients) if client not in line.forget]


def learns_from_ensemble(line: OneShotLine) -> bool:
    """Whether an ensemble predicts, or teaches the student on public images."""
    return line.distillation is None or line.distillation.teacher == "ensemble"


def learns_from_moments(line: OneShotLine) -> bool:
    """Whether a line's model has a head that follows from moments of clients' features."""
    return line.distillation is not None and line.distillation.teacher == "moments"
