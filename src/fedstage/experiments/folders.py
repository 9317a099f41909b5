"""The settings that the names of folders of results stand for."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from fedstage.plan import identity
from fedstage.plan.discriminators import discriminating, weighs_by_odds
from fedstage.plan.generator_sharing import clients_generate, generating, training_generators
from fedstage.plan.moments import measuring
from fedstage.plan.one_shot_sharing import (
    aggregating,
    generates,
    learns_from_moments,
    local_line,
    quantised_line,
    started_models,
    teaching,
    unquantised,
)
from fedstage.plan.sharing import normalised, undistilled
from fedstage.settings.data import Data
from fedstage.settings.lines import Line, LocalLine
from fedstage.settings.models import InitialModel, Model
from fedstage.settings.one_shot import OneShotLine
from fedstage.settings.public import Generated, HeldOut

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


def index(lines: Iterable[Line | LocalLine | OneShotLine]) -> dict[str, Any]:
    """Return, by folders' names, the settings of all files that the lines depend on."""
    trained = list(lines)
    one_shot = {line for line in trained if isinstance(line, OneShotLine)}
    alone = {line for line in trained if isinstance(line, LocalLine)}
    local = set(map(unquantised, alone)) | set(map(local_line, one_shot))
    precise = {*local, *alone, *map(quantised_line, one_shot)}
    of_rounds = [line for line in trained if isinstance(line, Line)]
    federated = {*map(normalised, of_rounds), *map(undistilled, of_rounds)}
    every: set[Line | LocalLine] = {*local, *federated}
    taught = {teaching(line) for line in one_shot if line.distillation is not None}
    readers: list[Line | OneShotLine] = [*federated, *taught]
    public = {line.public for line in readers if not isinstance(line.public, HeldOut | Generated)}
    pictured = {generating(line) for line in one_shot if generates(line)}
    pictured |= {training_generators(line) for line in one_shot if clients_generate(line)}
    judged = {discriminating(line) for line in federated if weighs_by_odds(line)}
    measured = {measuring(line) for line in one_shot if learns_from_moments(line)}
    initial = {
        Initial(line.data, model, line.seed)
        for line in federated
        for model in (line.model, *line.architectures)
    }
    initial |= {
        Initial(line.data, one, line.seed) for line in local for one in started_models(line)
    }
    initial |= {Initial(line.data, line.student, line.seed) for line in taught if line.student}
    return {
        "data": {identity.data_id(data): data for data in {line.data for line in every} | public},
        "partitions": {identity.partition_id(line): line for line in every},
        "plans": {identity.participation_id(line): line for line in federated},
        "initial": {identity.initial_id(one.data, one.model, one.seed): one for one in initial},
        "lines": {
            **{identity.line_id(line): line for line in federated},
            **{identity.local_id(line): line for line in local},
            **{identity.aggregator_id(line): aggregating(line) for line in one_shot},
            **{identity.student_id(line): line for line in taught},
            **{identity.generator_id(line): line for line in pictured},
            **{identity.discriminator_id(line): line for line in judged},
            **{identity.moments_id(line): line for line in measured},
        },
        "precisions": {identity.precision_id(line): line for line in precise},
    }
