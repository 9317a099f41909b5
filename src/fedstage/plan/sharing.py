"""Identity: which settings a file depends on, and so which folder it belongs to.

A folder's name is readable first and ends in a digest of the settings that determine its content,
in canonical form: fields at their defaults left out, 1 equal to 1.0. Changing a default changes
what an old digest means, so it must raise `SCHEMA_VERSION` (a test holds the two together).

The heart is `owner`: a file belongs to the training line stripped of every setting that cannot
reach it, so that methods which share their first rounds, or their undistilled groups, share the
files.
"""

import hashlib
import json
import re
from functools import cache
from typing import Any

from fedstage.settings.aggregators import TRAINED_AGGREGATORS
from fedstage.settings.base import Settings
from fedstage.settings.binding import Binding
from fedstage.settings.data import Data, HeldOut
from fedstage.settings.ensembles import GlobalTrainer
from fedstage.settings.lines import BoundClients, Line, LocalLine, models_of, re_estimates
from fedstage.settings.local_training import STATEFUL_TRAINERS
from fedstage.settings.models import Model, has_batch_norm
from fedstage.settings.numerics import Numerics
from fedstage.settings.one_shot import OneShot, OneShotLine
from fedstage.settings.optimisation import Client
from fedstage.settings.quantisation import NotQuantised, Quantisation
from fedstage.settings.slots import slots_of

SCHEMA_VERSION = 1

#: In the names of lines whose clients keep running statistics of their own.
_LOCAL_STATISTICS = "local_bn"
#: Server optimisers with moments, and compression that remembers anything, by their names.
_REMEMBERED = ("momentum", "adam", "yogi", "stc")


def canonical(settings: Settings) -> dict[str, Any]:
    """Return settings as JSON-serialisable data, without the fields at their defaults."""
    return settings.model_dump(mode="json", by_alias=True, exclude_defaults=True)


def as_json(content: Any) -> str:
    """Write content in the one form that digests and rule parameters use."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"))


def digest(content: Any) -> str:
    """Return 10 hexadecimal digits that identify canonical content."""
    text = as_json({"schema": SCHEMA_VERSION, "content": content})
    return hashlib.sha256(text.encode()).hexdigest()[:10]


# --- what reaches what ----------------------------------------------------------------------------


def students(line: Line) -> tuple[int, ...]:
    """Return the groups whose global models are distilled."""
    if line.global_trainer is None:
        return ()
    if line.global_trainer.name == "basic":
        return tuple(range(line.global_models))
    if line.global_trainer.main == "first":
        return (0,)
    models = models_of(line)
    return tuple(sorted({models.index(model) for model in models}))


def first_distillation(line: Line) -> int:
    """Return the first round that ends in a distillation."""
    return line.global_trainer.warm_up + 1 if line.global_trainer else 0


def is_distilled(line: Line, round: int, group: int) -> bool:
    """Whether w*_{t,k} differs from w_{t,k}: the group is a student of this round."""
    return group in students(line) and round >= first_distillation(line)


@cache
def owner(line: Line, round: int, group: int) -> Line:
    """Return the line that the training and aggregation of a round and group belong to.

    Distillation reaches w_{t,k} only through what its participants start from; where that was not
    distilled, neither the teacher nor the server's settings can matter, and the file is the
    undistilled line's.
    """
    return normalised(line) if _is_reached(line, round, group) else undistilled(line)


def _is_reached(line: Line, round: int, group: int) -> bool:
    """Whether a distillation reaches what the participants of a round and group start from.

    That is w*_{t-1,k}, and with shared control variates what the participants of any group sent in
    round t-1: the students' were reached if they had started from a distilled model.
    """
    if is_distilled(line, round - 1, group):
        return True
    return shares_control(line) and 0 < first_distillation(line) <= round - 2


@cache
def undistilled(line: Line) -> Line:
    """Return the line without its distillation."""
    return normalised(line.model_copy(update={"global_trainer": None}))


@cache
def normalised(line: Line) -> Line:
    """Return the line without settings that nothing reads."""
    unread: dict[str, Any] = {}
    if line.global_trainer is None:
        unread = {"ensemble": None, "server": None}
        if not re_estimates(line):
            unread["public"] = HeldOut(name="held_out")
    if line.participants % line.global_models < 2:
        unread["remainder"] = "spread"  # a remainder of one is group 0's in any case
    if set(line.architectures) == {line.model}:
        unread["architectures"] = ()
    if line.client_architectures:
        unread["client_architectures"] = _runs_of_clients(line)
    if line.global_trainer is not None and len(set(models_of(line))) == 1:
        unread["global_trainer"] = _without_choice_of_main(line.global_trainer)
    if not any(map(has_batch_norm, models_of(line))):
        unread["aggregation"] = line.aggregation.model_copy(update={"batch_norm": "average"})
    if line.local.name == "scaffold" and line.global_models == 1:
        unread["local"] = line.local.model_copy(update={"control": "per_model"})
    return line.model_copy(update=unread)


def _runs_of_clients(line: Line) -> tuple[BoundClients, ...]:
    """Return to which architectures clients are bound, in the one shortest form.

    Neighbours that are bound to the same are one entry, and the last are not unbound. Where all
    groups have one architecture, every client can be in any.
    """
    runs: list[BoundClients] = []
    for part in line.client_architectures if len(set(models_of(line))) > 1 else ():
        if runs and runs[-1].model == part.model:
            part = part.model_copy(update={"clients": runs.pop().clients + part.clients})
        runs.append(part)
    return tuple(runs[:-1] if runs and runs[-1].model is None else runs)


def _without_choice_of_main(trainer: GlobalTrainer) -> GlobalTrainer:
    """Return the settings of a main model that is that of group 0 in any case."""
    if trainer.name == "basic":
        return trainer
    return trainer.model_copy(update={"main": "first"})


def model_of(line: Line, group: int) -> Model:
    """Return the architecture of a group."""
    return line.architectures[group] if line.architectures else line.model


def shares_control(line: Line) -> bool:
    """Whether a round reads what the clients of all groups sent in the round before."""
    local = normalised(line).local
    return local.name == "scaffold" and local.control == "shared"


def keeps_state(line: Line) -> bool:
    """Whether clients or the server remember anything from round to round but the model."""
    return clients_keep_state(line) or optimises(line) or keeps_changes(line)


def clients_keep_state(line: Line) -> bool:
    """Whether participants read what was remembered of the round before."""
    kept = line.compression.name == "stc" and line.compression.residuals
    return line.local.name in STATEFUL_TRAINERS or keeps_statistics(line) or kept


def optimises(line: Line) -> bool:
    """Whether the server has an optimiser, with moments that it remembers."""
    return line.aggregation.server_optimizer.name != "average"


def keeps_changes(line: Line) -> bool:
    """Whether compression remembers what it left out, or which model each client has."""
    how = line.compression
    return how.name == "stc" and (how.residuals or how.downstream)


def keeps_statistics(line: Line) -> bool:
    """Whether clients keep running statistics of batch normalisation of their own."""
    return normalised(line).aggregation.batch_norm == "local"


_UNQUANTISED = NotQuantised(name="none")
#: Settings of clients that are about several rounds, as they are without any.
_UNREAD_IN_ONE_TRAINING = {"round_decay": 1.0, "batches": "anew"}
#: What one-shot lines have and federated ones do not, and what means something else there.
_OF_CLIENTS = (
    "aggregator_fraction",
    "initialisation",
    "architectures",
    "quantisation",
    "pooled",
)


def alone(line: Line, rounds: int, *, pooled: bool, own: OneShot | None = None) -> LocalLine:
    """Return the unfederated counterpart of a line: as many local epochs (steps) as `rounds` hold.

    The schedule of a round stretches over the whole length; `round_decay` does not apply, and there
    is no round that batches would have to go on from.

    Parameters
    ----------
    own : OneShot, optional
        Where clients train alone: on which part of their samples, and from which weights.
    """
    client = line.client
    length: dict[str, Any] = dict(_UNREAD_IN_ONE_TRAINING)
    if client.epochs is not None:
        length["epochs"] = client.epochs * rounds
    if client.steps is not None:
        length["steps"] = client.steps * rounds
    shared = {
        name: getattr(line, name) for name in LocalLine.model_fields if name not in _OF_CLIENTS
    }
    shared["client"] = Client.model_validate(client.model_dump() | length)
    shared["numerics"] = _storing_no_logits(line)
    if own is not None and not pooled:
        shared["aggregator_fraction"] = _left_out(own)
        shared["initialisation"] = own.initialisation
        shared["quantisation"] = own.quantisation
    return LocalLine.model_construct(**shared, pooled=pooled)


def _left_out(own: OneShot) -> float:
    """Return the fraction of their samples that clients' models are not trained on."""
    return 0.0 if own.local_fraction == 1 else own.aggregator_fraction


def _storing_no_logits(line: Line | OneShotLine) -> Numerics:
    return line.numerics.model_copy(update={"logits": "fp32"})


# --- one-shot lines -------------------------------------------------------------------------------


@cache
def local_line(line: OneShotLine) -> LocalLine:
    """Return what the models of a one-shot line's clients depend on.

    Whatever is made of them reads the same files: no aggregator reaches them. Clients that train on
    all of their samples are those of a line without samples for an aggregator.
    """
    models = _shortest_cycle([client_model(line, client) for client in range(line.clients)])
    shared = {name: getattr(line, name) for name in LocalLine.model_fields if name != "pooled"}
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
    """Return what the models depend on that a line trains, whatever is made of them."""
    return line.model_copy(update={"quantisation": _UNQUANTISED})


@cache
def quantised_line(line: OneShotLine) -> LocalLine:
    """Return what the models depend on that are aggregated: of the precision of their logits."""
    return local_line(line).model_copy(update={"quantisation": line.quantisation})


def client_model(line: LocalLine | OneShotLine, client: int) -> Model:
    """Return the architecture of a client: they are dealt out in turn."""
    models = line.architectures
    return models[client % len(models)] if models else line.model


def _shortest_cycle(models: list[Model]) -> tuple[Model, ...]:
    """Return the least that gives all models when it is repeated."""
    lengths = range(1, len(models) + 1)
    repeats = (n for n in lengths if all(m == models[i % n] for i, m in enumerate(models)))
    return tuple(models[: next(repeats)])


def members(line: OneShotLine) -> list[int]:
    """Return the clients whose models are aggregated."""
    return [client for client in range(line.clients) if client not in line.forget]


@cache
def aggregating(line: OneShotLine) -> OneShotLine:
    """Return the line without what cannot reach its aggregator."""
    local = local_line(line)
    own = ("pooled", "quantisation")
    read = {name: getattr(local, name) for name in LocalLine.model_fields if name not in own}
    read |= {"local_fraction": None, "forget": tuple(sorted(set(line.forget)))}
    if line.aggregator.name not in TRAINED_AGGREGATORS:
        read["aggregator_training"] = None
    read |= {"distillation": None, "student": None, "server": None}
    return line.model_copy(update=read | {"public": HeldOut(name="held_out")})


@cache
def teaching(line: OneShotLine) -> OneShotLine:
    """Return a line with a student, without what cannot reach it."""
    assert line.distillation is not None, "asked of lines with a student only"
    assert line.server is not None, "checked by OneShotLine"
    server = line.server
    if line.distillation.name != "kl":
        other = {"temperature": 4.0, "tau_squared": True, "sharpening": 1.0}
        server = server.model_copy(update=other)
    read = {
        "distillation": line.distillation,
        "student": line.student or line.model,
        "server": server,
        "public": line.public,
    }
    return aggregating(line).model_copy(update=read)


# --- slots and groups -----------------------------------------------------------------------------


def group_slots(line: Line, group: int) -> range:
    """Return the slots of a round that train a group."""
    return slots_of(line.participants, line.global_models, line.remainder, group)


def cohorts(line: Line, group: int, size: int | None) -> list[tuple[int, ...]]:
    """Cut the slots of a group into cohorts of at most `size`; None: all of them in one."""
    slots = tuple(group_slots(line, group))
    step = size or len(slots)
    return [slots[start : start + step] for start in range(0, len(slots), step)]


# --- clients bound to architectures ---------------------------------------------------------------


@cache
def binding(line: Line) -> Binding | None:
    """Return which clients may be which slot of a round; None where each may be any."""
    parts = normalised(line).client_architectures
    if not parts:
        return None
    numbers: dict[Model | None, int | None] = {None: None}
    numbers |= {model: number for number, model in enumerate(dict.fromkeys(models_of(line)))}
    groups = range(line.global_models)
    slots = [numbers[model_of(line, k)] for k in groups for _ in group_slots(line, k)]
    bound = [numbers[part.model] for part in parts for _ in range(part.clients)]
    unbound = [None] * (line.clients - len(bound))
    return Binding.model_validate({"slots": slots, "clients": bound + unbound})


# --- names ----------------------------------------------------------------------------------------


@cache
def data_id(data: Data) -> str:
    """Name the folder of a data set."""
    return f"{_short(data)}-{digest(canonical(data))}"


@cache
def partition_id(line: Line | LocalLine) -> str:
    """Name the folder of a partition: data, scheme, clients, roles and seed."""
    content = partition_settings(line) | {"data": canonical(line.data)}
    readable = f"{_short(line.data)}-{_partition_name(line)}-seed{line.seed}"
    return f"{readable}-{digest(content)}"


def partition_settings(line: Line | LocalLine) -> dict[str, Any]:
    """Return what, beside the data, determines a partition."""
    settings = {
        "clients": line.clients,
        "partition": canonical(line.partition),
        "validation": line.validation,
        "seed": line.seed,
    }
    if isinstance(line, LocalLine) and line.aggregator_fraction:
        settings["aggregator_fraction"] = line.aggregator_fraction
    return settings


@cache
def participation_id(line: Line) -> str:
    """Name the folder of a participation plan: all that determines it, binding of clients too."""
    drawn, rule = f"{line.participants}_of_{line.clients}", binding(line)
    if rule is None:
        return f"{drawn}-seed{line.seed}"
    return f"{drawn}-bound-seed{line.seed}-{digest(canonical(rule))}"


@cache
def initial_id(data: Data, model: Model, seed: int) -> str:
    """Name the folder of initial weights: the data set gives the shape and the classes."""
    content = {"data": canonical(data), "model": canonical(model), "seed": seed}
    return f"{_short(data)}-{model.name}-seed{seed}-{digest(content)}"


@cache
def line_id(line: Line) -> str:
    """Name the folder of a training line."""
    method: str = line.local.name
    if keeps_statistics(line):
        method += f"-{_LOCAL_STATISTICS}"
    if line.compression.name != "none":
        method += f"-{line.compression.name}" + ("" if keeps_changes(line) else "_memoryless")
    if optimises(line):
        method += f"-{line.aggregation.server_optimizer.name}"
    if line.global_models > 1:
        method += f"-K{line.global_models}"
    if line.global_trainer is not None:
        method += f"-{line.global_trainer.name}"
    return f"{_common_name(line)}-{method}-seed{line.seed}-{digest(canonical(normalised(line)))}"


@cache
def local_id(line: LocalLine) -> str:
    """Name the folder of models that are trained without federation."""
    method = "pooled" if line.pooled else "alone"
    content = canonical(unquantised(line))
    return f"{_common_name(line)}-{method}-seed{line.seed}-{digest(content)}"


@cache
def quantisation_id(quantisation: Quantisation) -> str:
    """Name the folder of what is made of models in a precision: `fp32` where it is their own."""
    if quantisation.name == "none":
        return "fp32"
    return f"{quantisation.name}-{digest(canonical(quantisation))}"


@cache
def precision_id(line: LocalLine) -> str:
    """Name the models of a line in the precision in which they are asked."""
    return f"{local_id(line)}/{quantisation_id(line.quantisation)}"


@cache
def aggregator_id(line: OneShotLine) -> str:
    """Name the folder of an aggregator."""
    return _one_shot_id(aggregating(line), line.aggregator.name)


@cache
def student_id(line: OneShotLine) -> str:
    """Name the folder of a model that a one-shot ensemble has taught."""
    settings = teaching(line)
    assert settings.distillation is not None, "asked of lines with a student only"
    return _one_shot_id(settings, f"{line.aggregator.name}-{settings.distillation.name}")


def _one_shot_id(settings: OneShotLine, method: str) -> str:
    if settings.quantisation.name != "none":
        method += f"-{settings.quantisation.name}"
    if settings.forget:
        method += f"-without_{_listed(settings.forget)}"
    name = _common_name(local_line(settings))
    return f"{name}-{method}-seed{settings.seed}-{digest(canonical(settings))}"


def _listed(clients: tuple[int, ...]) -> str:
    """Name clients, as far as a file's name has room for it."""
    return "_".join(map(str, clients)) if len(clients) <= 5 else f"{len(clients)}_clients"


def is_stateful_name() -> str:
    """Return a pattern for the ids of lines that keep state between rounds."""
    return rf"[^/]+-(?:{'|'.join((*STATEFUL_TRAINERS, _LOCAL_STATISTICS, *_REMEMBERED))})-[^/]+"


def _common_name(line: Line | LocalLine) -> str:
    model: str = line.model.name
    if len(set(getattr(line, "architectures", ()))) > 1:
        model += "_and_others"
    return f"{_short(line.data)}-{_partition_name(line)}-{model}"


def _partition_name(line: Line | LocalLine) -> str:
    alpha = getattr(line.partition, "alpha", None)
    return line.partition.name + (f"{alpha:g}" if alpha is not None else "")


def _short(data: Data) -> str:
    return re.sub(r"[^A-Za-z0-9]", "_", data.folder) if data.name == "parquet" else data.name
