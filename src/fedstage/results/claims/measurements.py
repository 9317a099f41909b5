"""The cells that claims are judged on, with the measured number of each seed."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from math import isfinite, isnan, nan

import pandas as pd

from fedstage.errors import FedstageError
from fedstage.results.cells import as_text, show_point
from fedstage.results.claims.comparisons import Cell
from fedstage.results.published.matching import without_seed
from fedstage.results.runs_file import SEED, ExperimentRun, ExperimentRuns
from fedstage.results.tables.runs import RUN, last_rounds
from fedstage.settings.scores import TOTALS


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


def unreached(
    values: Mapping[int, float], table: pd.DataFrame, experiment: ExperimentRuns, metric: str
) -> dict[int, float]:
    """Return what runs had communicated when they ended below their goal, by the run's position.

    `values` are the runs' values of the metric. If it is one until the goal is reached, it is
    larger than these totals; other metrics have no such runs.
    """
    if metric not in TOTALS:
        return {}
    totals = values_of_table(table, experiment, TOTALS[metric])
    return {i: total for i, total in totals.items() if isnan(values[i])}


def images_of_runs(frame: pd.DataFrame) -> dict[int, int]:
    """Return the number of samples behind each run's last accuracy, by the run's position."""
    last = last_rounds(frame)
    return dict(zip(last[RUN], last["samples"].astype(int), strict=True))


def cells_of(
    experiment: ExperimentRuns,
    values: Mapping[int, float],
    published: bool,
    images: Mapping[int, int] | None = None,
    open_ended: Collection[int] = (),
) -> list[Cell]:
    """Return the cells of an experiment, in the order of its runs.

    `values` are the measured numbers by a run's position; only finite ones count. `published` is
    whether the published numbers are in the same metric. `images` are the numbers of test samples
    of each run, if the measured numbers are accuracies. `open_ended` are the positions of runs
    whose number is only a lower limit.
    """
    seeds: dict[str, dict[int, ExperimentRun]] = {}
    for i, run in enumerate(experiment.runs):
        seeds.setdefault(show_point(without_seed(run.settings)), {})[i] = run
    return [_cell(same, values, published, images or {}, open_ended) for same in seeds.values()]


def _cell(
    runs: Mapping[int, ExperimentRun],
    values: Mapping[int, float],
    published: bool,
    images: Mapping[int, int],
    open_ended: Collection[int],
) -> Cell:
    """Return the cell of runs that differ in their seed, by their positions."""
    first = next(iter(runs.values()))
    known = [i for i in runs if isfinite(values.get(i, nan))]
    measured = {runs[i].settings[SEED]: values[i] for i in known}
    samples = min((images[i] for i in known if i in images), default=None)
    limits = frozenset(runs[i].settings[SEED] for i in known if i in open_ended)
    cell = Cell(without_seed(first.settings), measured, images=samples, open_ended=limits)
    number = first.published if published else None
    if number is None:
        return cell
    return replace(
        cell, published=number.value, published_std=number.std, published_seeds=number.seeds
    )
