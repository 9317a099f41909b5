"""One number a run: a measure of its last round, of its costs, or of what it forgets."""

from collections.abc import Callable, Mapping
from math import isfinite, nan
from typing import cast

import pandas as pd

from fedstage.errors import FedstageError
from fedstage.results.comparisons import Cell
from fedstage.results.tidy import METHOD, SEED, Header, Tidy, by_round, cell_numbers, last_rounds
from fedstage.settings.cells import names_of, selects
from fedstage.settings.experiments import is_fixed
from fedstage.settings.scores import COMMUNICATED, RETAINED, SECONDS, Axis, Cells

#: The samples that forgetting is measured on.
PARTICIPANTS = "participants"
#: How measures begin that compare a run with another method.
OVERLAP = "overlap with "


def cells_of(scores: Tidy, metric: str, costs: Tidy | None = None) -> list[Cell]:
    """Return the cells of an experiment with a metric of each seed, and the paper's numbers.

    A cell with a run whose number is not finite counts as not measured: if some runs never reach a
    goal, the others are the fast ones.

    Raises
    ------
    FedstageError
        If no run has the metric.
    """
    header = scores.header
    runs = of_runs(scores, metric, costs)
    numbers = runs.assign(cell=cell_numbers(header, runs)).groupby("cell")
    cells = []
    for i, described in enumerate(header.cells):
        values: dict[Axis, float] = {}
        if i in numbers.groups:
            own = numbers.get_group(i)
            values = dict(zip(own[SEED].tolist(), own["value"].astype(float), strict=True))
        if not all(map(isfinite, values.values())):
            values = {}
        number = described.published.get(metric)
        printed = (number.value, number.std, number.seeds) if number else ()
        cells.append(Cell(described.axes, values, *printed))
    return cells


def of_runs(scores: Tidy, metric: str, costs: Tidy | None = None) -> pd.DataFrame:
    """Return a metric, `value`, of each run, with its values on all axes and its seed."""
    last = last_rounds(scores)
    if metric in last.select_dtypes("float").columns.difference(scores.run):
        return last[scores.run].assign(value=last[metric])
    if metric in RETAINED and PARTICIPANTS in set(scores.frame["role"]):
        return _forgotten(scores, metric)
    if metric in COMMUNICATED | SECONDS and costs is not None:
        return _of_costs(scores, costs, metric)
    known = last.select_dtypes("float").columns.difference(scores.run, sort=False)
    raise FedstageError(
        f"{scores.header.target}: metric = {metric!r}: not measured; use one of {', '.join(known)}"
    )


# --- costs ----------------------------------------------------------------------------------------


def _of_costs(scores: Tidy, costs: Tidy, metric: str) -> pd.DataFrame:
    rows = costs.frame
    if metric in SECONDS:
        stage = metric.removesuffix("_s")
        here = rows[(rows["side"] == "round") & (rows["stage"] == stage)]
        return here[costs.run].assign(value=here["median_s"])
    runs = last_rounds(scores)[scores.run]
    values = traffic(scores, costs)[metric]
    return runs.assign(value=values.to_numpy())


def traffic(scores: Tidy, costs: Tidy) -> pd.DataFrame:
    """Return the columns `Communicated` of each run, in the order of the grid.

    Raises
    ------
    FedstageError
        If bytes were not counted.
    """
    rows, run = costs.frame, scores.run
    last = last_rounds(scores)
    if "bytes" not in last:
        raise FedstageError(
            f"{scores.header.target}: bytes were not counted: add communication or costs to results"
        )
    at = pd.MultiIndex.from_frame(last[run].astype(object))

    def total(frame: pd.DataFrame, column: str) -> "pd.Series[float]":
        sums = frame.groupby(run, sort=False, dropna=False)[column].sum()
        sums.index = pd.MultiIndex.from_frame(sums.index.to_frame().astype(object))
        return sums.reindex(at)

    moved, unit = rows[rows["side"] == "travel"], rows[rows["side"] == "unit"]
    in_rounds, fetched = moved[moved["rounds"] > 0], moved[moved["stage"] == "ensemble"]
    both = total(moved, "bytes_up").fillna(0) + total(moved, "bytes_down").fillna(0)
    one = total(unit, "bytes_up") + total(unit, "bytes_down")
    others = [last[axis].astype(object).tolist() for axis in run if axis != METHOD]
    one = one.groupby(others).transform("max")  # the seed is always among them
    found = {
        "bytes": both,
        "params": total(moved, "everyone").fillna(0) / 4,
        "bytes_up_a_round": total(in_rounds, "bytes_up") / total(in_rounds, "rounds"),
        "ensemble_bytes": total(fetched, "bytes_down"),
        "memory_bytes": total(rows[rows["side"] == "memory"], "memory_bytes"),
    }
    numbers = pd.DataFrame({name: series.to_numpy() for name, series in found.items()})
    best, reached = until_best(scores), until_reached(scores)
    numbers["bytes_to_best"] = best["bytes"].to_numpy()
    numbers["bytes_to_reach"] = reached["bytes"].to_numpy()
    numbers["params_to_reach"] = reached["params"].to_numpy()
    for end in ("", "_to_best", "_to_reach"):
        numbers[f"times_one_shot{end}"] = numbers[f"bytes{end}"] / one.to_numpy()
    return numbers


def until_best(scores: Tidy) -> pd.DataFrame:
    """Return, for each run, the round that is best on validation samples, the first of equals.

    Runs that are evaluated once, or not on validation samples, have nan.
    """
    metric, run = scores.header.metric, scores.run
    tested = by_round(scores)
    checked = scores.frame[scores.frame["role"] == "validation"]
    rounds = by_round(scores, role="validation") if len(checked) else tested.head(0)
    grouped = rounds.groupby(run, sort=False, dropna=False)[metric] if len(rounds) else None
    chosen = rounds.loc[grouped.idxmax(), [*run, "round"]] if grouped is not None else rounds
    several = tested.groupby(run, dropna=False)["round"].transform("size") > 1
    found = tested[several].merge(chosen[[*run, "round"]], on=[*run, "round"])
    return last_rounds(scores)[run].merge(found, on=run, how="left")


def until_reached(scores: Tidy) -> pd.DataFrame:
    """Return, for each run, the first evaluated round with at least the score that it is to reach.

    A fixed score applies to all runs. Cells that are named give their last score, to runs with
    several evaluated rounds that agree with them on the seed and all axes that are not named.
    `target` is the score; runs without one, or that never reach it, have nan.
    """
    metric, run, header = scores.header.metric, scores.run, scores.header
    rounds, last = by_round(scores), last_rounds(scores)
    goals = last[run].assign(target=_goals(last, rounds, header))
    found = rounds.merge(goals, on=run)
    found = found[found[metric] >= found["target"]]
    first = found.groupby(run, sort=False, dropna=False).head(1).drop(columns="target")
    return goals.merge(first, on=run, how="left")


def _goals(last: pd.DataFrame, rounds: pd.DataFrame, header: Header) -> list[float]:
    reach, points = header.reach, last[[*header.axes, SEED]].astype(object).to_dict("records")
    plain: list[dict[str, Axis]] = [
        {str(k): None if pd.isna(v) else v for k, v in point.items()} for point in points
    ]
    if reach is None or is_fixed(reach):
        return [_fixed(reach, point) for point in plain]
    cells = cast(Cells, reach)
    several = (rounds.groupby([*header.axes, SEED], sort=False, dropna=False).size() > 1).tolist()

    def rest(point: Mapping[str, Axis]) -> tuple[str, ...]:
        return tuple(str(value) for axis, value in point.items() if axis not in cells)

    known = {
        rest(point): float(score)
        for point, score in zip(plain, last[header.metric], strict=True)
        if selects(cells, point)
    }
    pairs = zip(plain, several, strict=True)
    return [nan if selects(cells, p) or not many else known.get(rest(p), nan) for p, many in pairs]


def _fixed(reach: object, point: Mapping[str, Axis]) -> float:
    """Return the accuracy that a point is to reach: one for all, or by the value of an axis."""
    if not isinstance(reach, dict):
        return nan if reach is None else float(cast(float, reach))
    ((axis, goals),) = reach.items()
    return next((goals[name] for name in names_of(axis, point[axis]) if name in goals), nan)


# --- forgetting -----------------------------------------------------------------------------------


def _forgotten(scores: Tidy, metric: str) -> pd.DataFrame:
    """Return a measure of forgetting: of the last round, or a mean over later rounds."""
    rounds = by_round(scores, role=PARTICIPANTS)
    runs = rounds.groupby(scores.run, sort=False, dropna=False)
    with_others = [name for name in rounds if str(name).startswith(OVERLAP)]
    how: dict[str, Callable[[], pd.Series[float]]] = {
        "final_accuracy": lambda: runs["top1_accuracy"].last(),
        "fluctuation": lambda: rounds.assign(
            top1_accuracy=runs["top1_accuracy"].diff().abs()
        ).groupby(scores.run, sort=False, dropna=False)["top1_accuracy"].mean(),
        "overlap": lambda: runs[with_others].last().mean(axis=1),
    }  # fmt: skip
    if metric in how:
        values = how[metric]()
    else:
        # Means over the same rounds, so that the score is the difference of the accuracies.
        later = rounds[rounds["forget_score"].notna()] if "forget_score" in rounds else rounds
        values = later.groupby(scores.run, sort=False, dropna=False)[metric].mean()
    return values.rename("value").reset_index()
