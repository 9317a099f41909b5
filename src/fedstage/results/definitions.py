"""What the runs of an experiment are, as a file: for results that follow from settings."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from pydantic import Field

from fedstage.plan.runs import Run, RunLength
from fedstage.plan.sharing import canonical
from fedstage.settings.base import Settings
from fedstage.settings.experiments import Experiment
from fedstage.settings.lines import Line
from fedstage.settings.merging import Raw
from fedstage.settings.scores import Axis
from fedstage.settings.simulation import Simulation
from fedstage.settings.validation import validate
from fedstage.storage.files import load_json


class DefinedRun(Settings):
    """A federated run: its value on every axis, its line, and how long it is."""

    settings: dict[str, Axis]
    length: RunLength
    line: Line


class Definition(Settings):
    """An experiment at a scale, resolved."""

    experiment: str
    scale: str
    title: str
    rows: list[str]
    columns: list[str]
    simulation: Simulation
    runs: Annotated[list[DefinedRun], Field(min_length=1)]

    @property
    def axes(self) -> list[str]:
        """The axes that tell places of a table apart: rows, then columns."""
        return [*self.rows, *self.columns]

    def places(self) -> dict[tuple[Axis, ...], list[DefinedRun]]:
        """Return the runs by their values on `axes`: those of a place differ in their seed."""
        found: dict[tuple[Axis, ...], list[DefinedRun]] = {}
        for run in self.runs:
            found.setdefault(tuple(run.settings[axis] for axis in self.axes), []).append(run)
        return found


def define(name: str, scale: str, experiment: Experiment, runs: Iterable[Run]) -> Raw:
    """Return an experiment's definition, ready for JSON."""
    return {
        "experiment": name,
        "scale": scale,
        "title": experiment.title,
        "rows": experiment.table.rows,
        "columns": experiment.table.columns,
        "simulation": canonical(experiment.simulation),
        "runs": [
            {"settings": run.axes, "length": canonical(run.length), "line": canonical(run.line)}
            for run in runs
        ],
    }


def read_definition(path: Path) -> Definition:
    """Read what `define` gave.

    Raises
    ------
    FedstageError
        If the file is missing, damaged or not a definition.
    """
    return validate(Definition, load_json(path), str(path))
