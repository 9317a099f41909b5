"""Runs that start from the final model of another method.

So methods follow one another: federated rounds from a student that clients have taught in one shot
(FENS, Table 7: FedKD and then FedAvg), or the other way round. The method that `start` names, at
the same point of the grid, becomes a file of weights, whose name identifies all that determines it.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from fedstage.errors import FedstageError
from fedstage.plan import one_shot, unfederated
from fedstage.plan.one_shot_sharing import client_model, trained_on
from fedstage.plan.runs import Run
from fedstage.plan.training import global_model
from fedstage.settings.groups import models_of
from fedstage.settings.lines import Line, LocalLine
from fedstage.settings.merging import Raw
from fedstage.settings.models import Model
from fedstage.settings.one_shot import OneShotLine

#: The key of a method's name whose settings, at the same point, another method has.
LIKE = "like"

_FORM = "must be the name of a method, or {method: NAME, KEY: VALUE} with changes of its settings"
#: Settings in which a line and its start must agree.
_SHARED = ("data", "clients", "partition", "validation", "core", "seed")


def named_start(where: str, start: Any) -> tuple[str, Raw]:
    """Return the method that a run starts from, and changes of its settings."""
    changes = {"method": start} if isinstance(start, str) else start
    if not isinstance(changes, Mapping) or not isinstance(changes.get("method"), str):
        raise FedstageError(f"{where}: start = {start!r}: {_FORM}")
    return changes["method"], {key: value for key, value in changes.items() if key != "method"}


def ended_in(where: str, line: Line | LocalLine | OneShotLine, rounds: int) -> str:
    """Return the final model of a line: the main model after its last round, or a student.

    Raises
    ------
    FedstageError
        If the line ends in several models.
    """
    if isinstance(line, Line):
        return global_model(line, rounds, 0)
    if isinstance(line, OneShotLine) and line.distillation is not None:
        return one_shot.student_file(line)
    if isinstance(line, LocalLine) and line.on_core:
        return unfederated.local_models(line)[0]
    kind = "one_shot without distillation" if isinstance(line, OneShotLine) else "alone or pooled"
    raise FedstageError(
        f"{where}: training = {kind}: must be federated, core, or one_shot with distillation, to "
        "end in one model"
    )


def check_start(
    where: str, line: Line | LocalLine | OneShotLine, before: Line | LocalLine | OneShotLine
) -> None:
    """Refuse a line that cannot start from another.

    Raises
    ------
    FedstageError
        If their clients, data or architectures differ, or each client has its own start.
    """
    for key in _SHARED:
        if getattr(line, key) != getattr(before, key):
            other, own = (getattr(one, key) for one in (before, line))
            raise FedstageError(
                f"{where}: start: {key} = {getattr(other, 'name', other)!r}: must be that of the "
                f"run, {getattr(own, 'name', own)!r}"
            )
    student = before.student if isinstance(before, OneShotLine) else None
    final = student or before.model
    for model in _architectures(line):
        if model != final:
            raise FedstageError(
                f"{where}: start: ends in model = {final.name!r}: must be the run's, "
                f"{model.name!r}, settings included"
            )
    if getattr(line, "initialisation", "common") != "common":
        raise FedstageError(
            f"{where}: initialisation = 'own': must be 'common' with start, which all clients share"
        )


def check_parts(where: str, parts: Sequence[Run], methods: Mapping[str, Raw]) -> None:
    """Refuse methods that go on in rounds from one shot, or the other way round, with its settings.

    An experiment's base trains clients for one of these, to the end or for a round. So a method
    with a `start` of the other kind must be `like` the one that it is by itself.

    Parameters
    ----------
    parts : sequence of Run
        Runs that start from one another, each with its method among its axes.

    Raises
    ------
    FedstageError
        If such a method is like no other.
    """
    for before, part in pairwise(parts):
        method = str(part.axes["method"])
        own, other = part.length.training, before.length.training
        chained = "start" in methods[method] and LIKE not in methods[method]
        if chained and own != other and "one_shot" in (own, other):
            raise FedstageError(
                f"{where}, method {method}: {LIKE}: missing; a run with training = {own} that "
                f"starts from one with {other} must name the method whose settings it has"
            )


def _architectures(line: Line | LocalLine | OneShotLine) -> tuple[Model, ...]:
    """Return the architectures of all models that are trained from the start."""
    if isinstance(line, Line):
        return models_of(line) if line.start_of == "all" else (line.model,)
    if isinstance(line, LocalLine) and trained_on(line):
        return (line.model,)
    return tuple(client_model(line, client) for client in range(line.clients))
