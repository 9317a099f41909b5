"""What a run starts from where that is what another method has ended in: one model.

So methods follow one another: federated rounds from a student that clients have taught in one shot
(FENS, Table 7: FedKD and then FedAvg), or the other way round. What the setting `start` names, at
the same point of the grid, becomes a file of weights, whose name says all that determines it.
"""

from collections.abc import Mapping
from typing import Any

from fedstage.errors import FedstageError
from fedstage.plan.sharing import client_model, teaching
from fedstage.settings.lines import Line, LocalLine, models_of
from fedstage.settings.merging import Raw
from fedstage.settings.models import Model
from fedstage.settings.one_shot import OneShotLine

_FORM = "must be the name of a method, or {method: NAME, KEY: VALUE} with what is changed in it"
#: What two lines have in common of which one goes on from the other.
_SHARED = ("data", "clients", "partition", "validation", "seed")


def named_start(where: str, start: Any) -> tuple[str, Raw]:
    """Return the method that a run starts from, and what is changed in it.

    Raises
    ------
    FedstageError
        If no method is named.
    """
    changes = {"method": start} if isinstance(start, str) else start
    if not isinstance(changes, Mapping) or not isinstance(changes.get("method"), str):
        raise FedstageError(f"{where}: start = {start!r}: {_FORM}")
    return changes["method"], {key: value for key, value in changes.items() if key != "method"}


def ended_in(where: str, line: Line | LocalLine | OneShotLine, rounds: int) -> str:
    """Return the model that a line ends in: the main model after its last round, or a student.

    Raises
    ------
    FedstageError
        If it ends in several models.
    """
    from fedstage.plan import artefacts  # stages that only read settings ask for no files of others

    if isinstance(line, Line):
        return artefacts.global_model(line, rounds, 0)
    if isinstance(line, OneShotLine) and line.distillation is not None:
        return artefacts.student_file(line)
    kind = "one_shot without distillation" if isinstance(line, OneShotLine) else "alone or pooled"
    raise FedstageError(
        f"{where}: training = {kind}: must be federated, or one_shot with distillation, to end in "
        "one model"
    )


def check_start(
    where: str, line: Line | LocalLine | OneShotLine, before: Line | LocalLine | OneShotLine
) -> None:
    """Refuse a line that cannot go on from another.

    Raises
    ------
    FedstageError
        If their clients, data or architectures differ, or clients have starts of their own.
    """
    for key in _SHARED:
        if getattr(line, key) != getattr(before, key):
            raise FedstageError(
                f"{where}: start: {key} = {_shown(before, key)}: must be that of the run, "
                f"{_shown(line, key)}"
            )
    ended = _architecture(before)
    for model in _architectures(line):
        if model != ended:
            raise FedstageError(
                f"{where}: start: ends in model = {ended.name!r}: must be the run's, "
                f"{model.name!r}, settings included"
            )
    if getattr(line, "initialisation", "common") != "common":
        raise FedstageError(
            f"{where}: initialisation = 'own': must be 'common' with start, which all clients share"
        )


def _architecture(line: Line | LocalLine | OneShotLine) -> Model:
    """Return the architecture of the one model that a line ends in."""
    student = teaching(line).student if isinstance(line, OneShotLine) else None
    return student or line.model


def _architectures(line: Line | LocalLine | OneShotLine) -> tuple[Model, ...]:
    """Return the architectures of all that is trained from the start."""
    if isinstance(line, Line):
        return models_of(line)
    if isinstance(line, LocalLine) and line.pooled:
        return (line.model,)
    return tuple(client_model(line, client) for client in range(line.clients))


def _shown(line: Line | LocalLine | OneShotLine, key: str) -> str:
    value = getattr(line, key)
    return repr(getattr(value, "name", value))
