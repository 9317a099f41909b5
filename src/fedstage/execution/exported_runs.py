"""The parts of a run that are exported to any program: name, settings and scalars over rounds."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedstage.algorithm.measures.metrics import METRICS_SCHEMA
from fedstage.experiments.found_runs import last_part
from fedstage.experiments.runs_file import ExperimentRun, Part
from fedstage.plan.training import participants_table
from fedstage.protocol.digests import as_json, canonical
from fedstage.protocol.groups import client_groups
from fedstage.settings.cells import run_name
from fedstage.settings.recipes import Recipe
from fedstage.stages.collected.measured import read_metrics
from fedstage.storage.tables import load_table

#: Values by round, at most one per round of a run.
Series = list[tuple[int, float]]

_WHAT = ("round", "evaluated", "role")


@dataclass(frozen=True)
class ExportedRun:
    """A run: its name, its settings by their dotted names, and its scalars over rounds."""

    name: str
    settings: dict[str, str | int | float | bool]
    scalars: dict[str, Series]


def exported(run: ExperimentRun, folder: Path) -> ExportedRun:
    """Return the parts of a run that are exported.

    Settings are the content of `recipe.yaml`, which leaves out defaults, the length of the run, and
    its values on the axes of the grid. Scalars are the measures of
    `METRICS_SCHEMA`, such as ``test/top1_accuracy``, the measures on validation samples if they
    have been made, and ``training/loss``.

    Raises
    ------
    FedstageError
        If the run is not finished, or a file is damaged.
    """
    part = last_part(run)
    axes = {name: value for name, value in run.settings.items() if value is not None}
    settings = {**flat(canonical(part.recipe)), **flat(canonical(part.length)), **axes}
    scalars: dict[str, Series] = {}
    for path in (run.metrics, *validation_metrics(run)):
        scalars |= scores_in(path)
    if losses := training_losses(part, folder):
        scalars["training/loss"] = losses
    return ExportedRun(run_name(run.settings), settings, scalars)


def flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, str | int | float | bool]:
    """Return nested settings by dotted names; lists are written as JSON, nulls are left out.

    >>> flat({"client": {"epochs": 1}, "start": None, "milestones": [2, 3]})
    {'client.epochs': 1, 'milestones': '[2,3]'}
    """
    found: dict[str, str | int | float | bool] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{prefix}{key}.")
        elif value is not None:
            plain = isinstance(value, str | int | float | bool)
            found[f"{prefix}{key}"] = value if plain else as_json(value)
    return found


def scores_in(path: str) -> dict[str, Series]:
    """Return the measures of a metrics file over its rounds, without nulls."""
    frame = read_metrics(path)
    scores: dict[str, Series] = {}
    for row in frame.to_dict("records"):
        for name in METRICS_SCHEMA.names:
            if name not in _WHAT and row[name] == row[name] and row[name] is not None:
                place = scores.setdefault(f"{row['role']}/{name}", [])
                place.append((int(row["round"]), float(row[name])))
    return scores


def training_losses(part: Part, folder: Path) -> Series:
    """Return the mean training loss of each round that has tables of participants.

    Parts without rounds, and rounds without participants, have none.
    """
    recipe = part.recipe
    if not isinstance(recipe, Recipe):
        return []
    losses = (
        (round_, _loss(recipe, round_, folder)) for round_ in range(1, part.length.rounds + 1)
    )
    return [(round_, loss) for round_, loss in losses if loss is not None]


def _loss(recipe: Recipe, round_: int, folder: Path) -> float | None:
    return _mean_loss(
        row
        for group in client_groups(recipe)
        for path in [folder / participants_table(recipe, round_, group)]
        if path.is_file()
        for row in load_table(path, ["loss", "samples"]).to_pylist()
    )


def _mean_loss(rows: Iterable[Mapping[str, Any]]) -> float | None:
    """Return the mean over samples of participants' training losses, None if there are none.

    Parameters
    ----------
    rows : iterable of mapping
        Rows of tables of participants; one whose update was dropped has no loss.
    """
    counted = [row for row in rows if row["loss"] is not None]
    samples = sum(row["samples"] for row in counted)
    if not samples:
        return None
    return float(sum(row["loss"] * row["samples"] for row in counted) / samples)


def validation_metrics(run: ExperimentRun) -> list[str]:
    """Return a run's additional metrics on validation samples, where they have been made."""
    if run.chosen is not None or not run.validation or run.validation[0] == run.metrics:
        return []
    return [path for path in run.validation[:1] if Path(path).is_file()]
