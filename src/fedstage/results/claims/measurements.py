"""The cells that claims are judged on: what was measured with each seed, and what is published."""

from collections.abc import Mapping, Sequence
from math import isfinite

import pandas as pd

from fedstage.errors import FedstageError
from fedstage.results.cells import as_text, show_point
from fedstage.results.claims.comparisons import Cell
from fedstage.results.tables.runs import RUN, SEED, ResultRun, ResultRuns, last_rounds
from fedstage.settings.scores import Axis


def values_of_runs(frame: pd.DataFrame, metric: str) -> dict[int, float]:
    """Return a metric of each run's last evaluated round, by the run's position.

    Raises
    ------
    FedstageError
        If no column of the metrics is called so.
    """
    last = last_rounds(frame)
    if metric not in last or not pd.api.types.is_numeric_dtype(last[metric]):
        known = ", ".join(last.select_dtypes("number").columns.drop(RUN))
        raise FedstageError(f"claims: metric = {metric!r}: not measured; use one of {known}")
    return dict(zip(last[RUN], last[metric].astype(float), strict=True))


def values_of_table(table: pd.DataFrame, experiment: ResultRuns, metric: str) -> dict[int, float]:
    """Return a metric of each run from a table with a column an axis, `seed` and the metric.

    Raises
    ------
    FedstageError
        If a column is missing, or two rows are of the same run.
    """
    names = list(experiment.runs[0].settings)
    missing = [name for name in [*names, metric] if name not in table]
    if missing:
        raise FedstageError(f"measurements: {missing[0]}: no such column")
    found: dict[tuple[str, ...], float] = {}
    for key, value in zip(table[names].itertuples(index=False), table[metric], strict=True):
        place = tuple("none" if pd.isna(part) else as_text(part) for part in key)
        if place in found:
            told = ", ".join(f"{name} = {text}" for name, text in zip(names, place, strict=True))
            raise FedstageError(f"measurements: {told}: is there twice, once is allowed")
        found[place] = float(value)
    keys = [tuple(as_text(run.settings[name]) for name in names) for run in experiment.runs]
    return {i: found[key] for i, key in enumerate(keys) if key in found}


def cells_of(experiment: ResultRuns, values: Mapping[int, float], published: bool) -> list[Cell]:
    """Return the cells of an experiment, in the order of its runs.

    Parameters
    ----------
    values : mapping
        What was measured in each run, by its position; numbers that are not finite do not count.
    published : bool
        Whether the published numbers are of the same metric.
    """
    groups: dict[str, list[int]] = {}
    for i, run in enumerate(experiment.runs):
        groups.setdefault(show_point(_without_seed(run)), []).append(i)
    return [_cell(experiment.runs, group, values, published) for group in groups.values()]


def _cell(
    runs: Sequence[ResultRun], group: Sequence[int], values: Mapping[int, float], published: bool
) -> Cell:
    """Return the cell of runs that differ in their seed only."""
    first = runs[group[0]]
    measured = {i: values[i] for i in group if i in values and isfinite(values[i])}
    return Cell(
        axes=_without_seed(first),
        values={runs[i].settings[SEED]: value for i, value in measured.items()},
        published=first.published.value if published and first.published else None,
    )


def _without_seed(run: ResultRun) -> dict[str, Axis]:
    return {axis: value for axis, value in run.settings.items() if axis != SEED}
