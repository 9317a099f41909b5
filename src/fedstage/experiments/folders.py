"""The settings that the names of folders of results stand for."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from fedstage.plan import identity
from fedstage.plan.folders import AnyLine, folders_of
from fedstage.plan.one_shot_sharing import local_line, quantised_line, started_models, unquantised
from fedstage.plan.training_folder import owners
from fedstage.settings.data import Data
from fedstage.settings.equivalences import simplest
from fedstage.settings.lines import Line, LocalLine
from fedstage.settings.models import InitialModel, Model
from fedstage.settings.one_shot import OneShotLine
from fedstage.settings.public import CoreSamples, Generated, HeldOut

#: The kinds of folders whose names stand for settings: fields of `Catalogue`.
FOLDERS = ("data", "partitions", "plans", "initial", "lines", "precisions", "choices")


@dataclass(frozen=True)
class Initial:
    """All that determines initial weights."""

    data: Data
    model: Model
    seed: int

    @property
    def settings(self) -> InitialModel:
        """The settings of the stage; the data gives the shape."""
        return InitialModel(model=self.model, seed=self.seed)


def index(lines: Iterable[AnyLine]) -> dict[str, Any]:
    """Return, by folders' names, the settings of all files that the lines depend on."""
    trained = list(lines)
    folders = {path: found for line in trained for path, found in folders_of(line).items()}
    shot = {simplest(line) for line in trained if isinstance(line, OneShotLine)}
    alone = {line for line in trained if isinstance(line, LocalLine)}
    local = set(map(unquantised, alone)) | set(map(local_line, shot))
    precise = {*local, *alone, *map(quantised_line, shot)}
    of_rounds = [line for line in trained if isinstance(line, Line)]
    federated = {owner for line in of_rounds for owner in owners(line)}
    every: set[Line | LocalLine] = {*local, *federated}
    initial = set(_initial(federated, local, shot))
    data = {line.data for line in every}.union(*map(_public, (*federated, *shot)))
    return {
        "data": {identity.data_id(one): one for one in data},
        "partitions": {identity.partition_id(line): line for line in every},
        "plans": {identity.participation_id(line): line for line in federated},
        "initial": {identity.initial_id(one.data, one.model, one.seed): one for one in initial},
        "lines": {PurePosixPath(path).name: line for path, line in folders.items()},
        "folders": folders,
        "precisions": {identity.precision_id(line): line for line in precise},
    }


def _initial(
    federated: Iterable[Line], local: Iterable[LocalLine], shot: Iterable[OneShotLine]
) -> Iterator[Initial]:
    """Yield all that determines the initial weights of lines."""
    for line in federated:
        for model in (line.model, *line.architectures):
            yield Initial(line.data, model, line.seed)
    for alone in local:
        for model in started_models(alone):
            yield Initial(alone.data, model, alone.seed)
    yield from (Initial(one.data, one.student, one.seed) for one in shot if one.student)


def _public(line: Line | OneShotLine) -> set[Data]:
    """Return the data set that a line reads beside that of the clients, if there is one."""
    if isinstance(line.public, HeldOut | CoreSamples | Generated):
        return set()
    return {line.public}
