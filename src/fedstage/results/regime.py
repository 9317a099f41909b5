"""Whether runs are in the regime that a paper speaks of: clients converge, and rounds suffice."""

from collections.abc import Collection, Mapping
from math import nan

import pandas as pd

from fedstage.results.tidy import SEED, Header, Tidy, by_round, cell_numbers
from fedstage.settings.scores import Axis, Regime


def converging(scores: Tidy) -> pd.DataFrame:
    """Return how far the runs of each federated cell have converged, as means over seeds.

    The index is the cell's position in the header. `training_loss` is the participants' in the last
    evaluated round, and `rise` the gain of the metric over the last third of the rounds. Both are
    nan where they were not measured.
    """
    header, rounds = scores.header, by_round(scores)
    rounds = rounds.assign(cell=cell_numbers(header, rounds))
    federated = [i for i, cell in enumerate(header.cells) if cell.training == "federated"]
    found = {
        (cell, seed): _of_run(run, header.metric)
        for (cell, seed), run in rounds[rounds["cell"].isin(federated)].groupby(["cell", SEED])
    }
    frame = pd.DataFrame(found.values(), columns=["training_loss", "rise"], dtype="float64")
    cells = frame.groupby([cell for cell, _ in found])
    # Not cells.mean, which takes no skipna before pandas 3.
    means = {name: cells[name].agg(lambda of: of.mean(skipna=False)) for name in frame.columns}
    return pd.DataFrame(means)


def _of_run(run: pd.DataFrame, metric: str) -> tuple[float, float]:
    last = run.iloc[-1]
    before = run[run["round"] <= last["round"] * 2 / 3]
    scored = len(before) and metric in run  # not one of seconds
    rise = last[metric] - before[metric].iloc[-1] if scored else nan
    return float(last.get("training_loss", nan)), float(rise)


def is_outside(
    regime: Regime, found: pd.DataFrame, header: Header, axes: Collection[Mapping[str, Axis]]
) -> bool:
    """Whether any federated cell with these axes is not, or not known to be, in a regime."""
    own = [i for i in found.index if header.cells[i].axes in axes]
    bounds = {"training_loss": regime.training_loss, "rise": regime.rise}
    return any(
        not (found.loc[own, name] <= bound).all()
        for name, bound in bounds.items()
        if bound is not None
    )


def regime_line(regime: Regime, found: pd.DataFrame) -> str:
    """Write the regime of a paper next to the regime of the runs."""
    loss, rise = (
        _range(found[name], digits) for name, digits in (("training_loss", 3), ("rise", 1))
    )
    parts = {
        f"clients' training loss in the last round is {loss}": regime.training_loss,
        f"over the last third of the rounds the metric rises by {rise} points": regime.rise,
    }
    said = [f"{text} (converged: at most {bound:g})" for text, bound in parts.items() if bound]
    return f"**Regime**: {', and '.join(said)}."


def _range(values: "pd.Series[float]", digits: int) -> str:
    """Write the lowest and the highest of several values."""
    if values.isna().any() or not len(values):
        return "not known"
    ends = (f"{value:.{digits}f}".replace("-", "−") for value in (values.min(), values.max()))
    return " to ".join(dict.fromkeys(ends))
