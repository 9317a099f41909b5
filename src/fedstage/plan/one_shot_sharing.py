"""Which lines own the models, aggregators and students of training to the end.

As in `fedstage.plan.sharing`, each is stripped of the settings that cannot reach it.
"""

from functools import cache
from typing import Any

from fedstage.settings.aggregators import Averaging
from fedstage.settings.lines import Line, LocalLine
from fedstage.settings.models import Model
from fedstage.settings.numerics import Numerics
from fedstage.settings.one_shot import OneShot, OneShotLine
from fedstage.settings.optimisation import Client
from fedstage.settings.public import HeldOut
from fedstage.settings.quantisation import NotQuantised

#: The training of clients whose models nobody reads.
NO_CLIENT = Client(epochs=1, batch_size=1, learning_rate=1.0)

_UNQUANTISED = NotQuantised(name="none")

#: Settings of an ensemble that a student does not learn from.
_NO_ENSEMBLE: dict[str, Any] = {
    "architectures": (),
    "initialisation": "common",
    "quantisation": _UNQUANTISED,
    "aggregator": Averaging(name="averaging"),
    "aggregator_training": None,
    "members": None,
    "unknown": None,
    "prototypes": None,
}

#: Settings of clients that matter only in several rounds, at their defaults.
_UNREAD_IN_ONE_TRAINING = {"round_decay": 1.0, "batches": "anew"}

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
    length: dict[str, Any] = dict(_UNREAD_IN_ONE_TRAINING)
    for unit in ("epochs", "steps"):
        if (count := getattr(client, unit)) is not None:
            length[unit] = count * rounds
    shared = {
        name: getattr(line, name) for name in LocalLine.model_fields if name not in _OF_CLIENTS
    }
    shared["client"] = Client.model_validate(client.model_dump() | length)
    shared["numerics"] = _storing_no_logits(line)
    if own is not None and not (pooled or on_core):
        shared["aggregator_fraction"] = _left_out(own)
        shared["initialisation"] = own.initialisation
        shared["quantisation"] = own.quantisation
        shared["unknown"], shared["prototypes"] = own.unknown, own.prototypes
    return LocalLine.model_construct(**shared, pooled=pooled, on_core=on_core)


def _left_out(own: OneShot) -> float:
    """Return the fraction of clients' samples that do not train their models."""
    return 0.0 if own.local_fraction == 1 else own.aggregator_fraction


def _storing_no_logits(line: Line | OneShotLine) -> Numerics:
    return line.numerics.model_copy(update={"logits": "fp32"})


@cache
def local_line(line: OneShotLine) -> LocalLine:
    """Return the line of a one-shot line's client models, whichever aggregator reads them.

    Clients that train on all their samples share models with a line without aggregator samples.
    """
    models = _shortest_cycle([_dealt(line, client) for client in range(line.clients)])
    alone = LocalLine.model_fields.keys() - {"pooled", "on_core"}
    shared = {name: getattr(line, name) for name in alone}
    shared |= {
        "aggregator_fraction": _left_out(line),
        "model": models[0],
        "architectures": models if len(models) > 1 else (),
        "quantisation": _UNQUANTISED,
        "client": line.client.model_copy(update=_UNREAD_IN_ONE_TRAINING),
        "numerics": _storing_no_logits(line),
    }
    return LocalLine.model_construct(**shared)


@cache
def unquantised(line: LocalLine) -> LocalLine:
    """Return the line of the trained models, before quantisation."""
    return line.model_copy(update={"quantisation": _UNQUANTISED})


@cache
def quantised_line(line: OneShotLine) -> LocalLine:
    """Return the line of the aggregated client models, with their quantisation."""
    return local_line(line).model_copy(update={"quantisation": line.quantisation})


def client_model(line: LocalLine | OneShotLine, client: int) -> Model:
    """Return the architecture of a client, with the outputs that its training needs."""
    model = _dealt(line, client)
    learnt = line.unknown or line.prototypes
    if learnt is None:
        return model
    return model.model_copy(update={"more_outputs": learnt.more_outputs})


def started_models(line: LocalLine) -> set[Model]:
    """Return the architectures of all models that a line trains."""
    if line.pooled or line.on_core:
        return {line.model}
    return {client_model(line, client) for client in range(line.clients)}


def _dealt(line: LocalLine | OneShotLine, client: int) -> Model:
    """Return the architecture as settings have it; several are dealt out in turn."""
    models = line.architectures
    return models[client % len(models)] if models else line.model


def _shortest_cycle(models: list[Model]) -> tuple[Model, ...]:
    """Return the shortest prefix whose repetition gives all models."""
    lengths = range(1, len(models) + 1)
    repeats = (n for n in lengths if all(m == models[i % n] for i, m in enumerate(models)))
    return tuple(models[: next(repeats)])


def members(line: OneShotLine) -> list[int]:
    """Return the clients whose models are aggregated, or chosen from for that."""
    return [client for client in range(line.clients) if client not in line.forget]


@cache
def aggregating(line: OneShotLine) -> OneShotLine:
    """Return the line without settings that cannot reach its aggregator."""
    local = local_line(line)
    own = ("pooled", "on_core", "quantisation")
    read = {name: getattr(local, name) for name in LocalLine.model_fields if name not in own}
    read |= {"local_fraction": None, "forget": tuple(sorted(set(line.forget)))}
    if not line.aggregator.trained:
        read["aggregator_training"] = None
    read |= {"distillation": None, "student": None, "server": None, "generator": None}
    return line.model_copy(update=read | {"public": HeldOut(name="held_out")})


def generates(line: OneShotLine) -> bool:
    """Whether a line's predictions depend on generated images."""
    return line.distillation is not None and line.public.name == "generated"


def generates_on_server(line: OneShotLine) -> bool:
    """Whether they depend on images that the server generates against the clients' models."""
    return generates(line) and line.generator is not None and line.generator.trained_by == "server"


def learns_from_ensemble(line: OneShotLine) -> bool:
    """Whether an ensemble predicts, or teaches the student on public images."""
    return line.distillation is None or line.distillation.teacher == "ensemble"


def learns_from_moments(line: OneShotLine) -> bool:
    """Whether a line's model has a head that follows from moments of clients' features."""
    return line.distillation is not None and line.distillation.teacher == "moments"


def reads_models(line: OneShotLine) -> bool:
    """Whether a line's predictions depend on the clients' models."""
    return learns_from_ensemble(line) or generates_on_server(line)


@cache
def teaching(line: OneShotLine) -> OneShotLine:
    """Return a line with a student, without settings that cannot reach the student."""
    assert line.distillation is not None, "only lines with a student teach"
    server = None if learns_from_moments(line) else line.server
    if server is not None and line.distillation.name != "kl" and not generates_on_server(line):
        other = {"temperature": 4.0, "tau_squared": True, "sharpening": 1.0}
        server = server.model_copy(update=other)
    student = line.student or line.model
    read = {
        "distillation": line.distillation,
        "student": student,
        "server": server,
        "public": HeldOut(name="held_out") if learns_from_moments(line) else line.public,
        "generator": line.generator if line.public.name == "generated" else None,
    }
    if not reads_models(line):
        read |= _NO_ENSEMBLE | {"model": student, "client": NO_CLIENT}
        if local_line(line).model != student:
            read["start"] = None  # which is of another architecture
    return aggregating(line).model_copy(update=read)
