"""The cells that claims are judged on, with the measured number of each seed."""

from collections.abc import Mapping
from math import isfinite

import pandas as pd

from fedstage.errors import FedstageError
from fedstage.results.cells import as_text, show_point
from fedstage.results.claims.comparisons import Cell
from fedstage.results.published.matching import without_seed
from fedstage.results.runs_file import SEED, ExperimentRuns, PublishedNumber
from fedstage.results.tables.runs import RUN, last_rounds
from fedstage.settings.scores import Axis


def values_of_runs(frame: pd.DataFrame, metric: str) -> dict[int, float]:
    """Return a metric of each run's last evaluated round, by the run's position."""
    last = last_rounds(frame)
    if metric not in last or not pd.api.types.is_numeric_dtype(last[metric]):
        known = ", ".join(last.select_dtypes("number").columns.drop(RUN))
        raise FedstageError(f"claims: metric = {metric!r}: not measured; use one of {known}")
    return dict(zip(last[RUN], last[metric].astype(float), strict=True))


def values_of_table(
    table: pd.DataFrame, experiment: ExperimentRuns, metric: str
) -> dict[int, float]:
    """Return a metric of each run from a table with the axes, `seed` and the metric as columns.

    Raises
    ------
    FedstageError
        If a column is missing, or if two rows belong to the same run.
    """
    names = list(experiment.runs[0].settings)
    missing = [name for name in [*names, metric] if name not in table]
    if missing:
        raise FedstageError(f"measurements: {missing[0]}: no such column")
    values: dict[tuple[str, ...], float] = {}
    for key, value in zip(table[names].itertuples(index=False), table[metric], strict=True):
        place = tuple("none" if pd.isna(part) else as_text(part) for part in key)
        if place in values:
            run = show_point(dict(zip(names, place, strict=True)))
            raise FedstageError(f"measurements: {run}: is listed twice; keep one")
        values[place] = float(value)
    keys = [tuple(as_text(run.settings[name]) for name in names) for run in experiment.runs]
    return {i: values[key] for i, key in enumerate(keys) if key in values}


def images_of_runs(frame: pd.DataFrame) -> dict[int, int]:
    """Return the number of samples behind each run's last accuracy, by the run's position."""
    last = last_rounds(frame)
    return dict(zip(last[RUN], last["samples"].astype(int), strict=True))


def cells_of(
    experiment: ExperimentRuns,
    values: Mapping[int, float],
    published: bool,
    images: Mapping[int, int] | None = None,
) -> list[Cell]:
    """Return the cells of an experiment, in the order of its runs.

    `values` are the measured numbers by a run's position; only finite ones count. `published` is
    whether the published numbers are in the same metric. `images` are the numbers of test samples
    of each run, if the measured numbers are accuracies.
    """
    points: dict[str, dict[str, Axis]] = {}
    measured: dict[str, dict[Axis, float]] = {}
    numbers: dict[str, PublishedNumber | None] = {}
    samples: dict[str, int] = {}
    for i, run in enumerate(experiment.runs):
        point = without_seed(run.settings)
        key = show_point(point)
        if key not in points:
            points[key], measured[key] = point, {}
            numbers[key] = run.published if published else None
        if i in values and isfinite(values[i]):
            measured[key][run.settings[SEED]] = values[i]
            if images and i in images:
                samples[key] = min(samples.get(key, images[i]), images[i])
    return [
        _cell(point, measured[key], numbers[key], samples.get(key)) for key, point in points.items()
    ]


def _cell(
    point: Mapping[str, Axis],
    measured: Mapping[Axis, float],
    number: PublishedNumber | None,
    images: int | None,
) -> Cell:
    if number is None:
        return Cell(point, measured, images=images)
    return Cell(point, measured, number.value, number.std, number.seeds, images)
