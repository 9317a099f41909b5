"""The exact numbers of a table: the last evaluated round of each run, averaged over seeds."""

from collections.abc import Sequence
from math import nan
from typing import Any

import numpy as np
import pandas as pd

from fedstage.errors import FedstageError
from fedstage.results.labels import place_label
from fedstage.results.statistics import welch_interval
from fedstage.results.tidy import ORIGIN, SEED, Header, Tidy, cell_numbers, last_rounds

#: What a run says by its worst seed.
_WORST = ("epsilon", "example_epsilon", "delta")
_ADDED_UP = ("dropped", "updates")


def summarise(scores: Tidy) -> pd.DataFrame:
    """Return one row per cell: its axes, mean, `std` and `seeds` of the metric, and other means.

    Rows are ordered by each axis of the table in turn, its values as they first appear. `cell` is
    the position in the header; `by_seed` are the values behind the mean. At the paper's scale
    there are `published`, `published_std` and `published_seeds`, and the `difference` to it with
    its 95 % interval (Welch). Of `as_released` there is a deviation as well; epsilon is of the
    worst seed, and `dropped` and `updates` are sums.

    Raises
    ------
    FedstageError
        If the seeds of one row ended in different rounds.
    """
    header, last = scores.header, last_rounds(scores)
    metric, axes = header.metric, header.shown
    if metric not in last or last[metric].isna().any():
        raise FedstageError(f"{header.target}: metric = {metric!r}: not measured in every run")
    last = last.assign(cell=cell_numbers(header, last))
    codes = [pd.factorize(last[axis], use_na_sentinel=False)[0] for axis in axes]
    last = last.iloc[np.lexsort(codes[::-1])]
    cells = last.groupby(axes, sort=False, dropna=False)
    _check_one_length(cells["round"].nunique(), header)
    found = cells[metric].agg(["mean", "std", "count"])
    found = found.set_axis([metric, "std", "seeds"], axis="columns")
    found["rounds"], found["cell"] = cells["round"].first(), cells["cell"].first()
    by_seed = [dict(zip(cell[SEED], cell[metric], strict=True)) for _, cell in cells]
    found["by_seed"] = pd.Series(by_seed, index=found.index, dtype=object)
    measures = last.select_dtypes("float").columns.difference([*axes, metric, *ORIGIN], sort=False)
    for name in measures:
        if name in _WORST:
            found[name] = cells[name].agg(lambda of: of.max(skipna=False))
        else:
            found[name] = cells[name].sum(min_count=1) if name in _ADDED_UP else cells[name].mean()
    if "as_released" in found:
        found["as_released_std"] = cells["as_released"].std()
    found = found.reset_index()
    return found.assign(**_published(found, header))


def _check_one_length(rounds: "pd.Series[Any]", header: Header) -> None:
    if (several := rounds[rounds > 1]).empty:
        return
    names = [str(name) for name in rounds.index.names]
    place = several.index[0] if len(names) > 1 else (several.index[0],)
    where = place_label(names, dict(zip(names, place, strict=True)), header)
    raise FedstageError(
        f"{header.target}: {where}: the seeds end in different rounds: must be one and the same"
    )


def _published(found: pd.DataFrame, header: Header) -> dict[str, Sequence[Any]]:
    """Return the paper's numbers, and the differences to them at the paper's scale."""
    if header.published is None:
        return {}
    numbers = [header.cells[cell].published.get(header.metric) for cell in found["cell"]]
    columns: dict[str, Sequence[Any]] = {
        "published": [nan if n is None else n.value for n in numbers],
        "published_std": [nan if n is None or n.std is None else n.std for n in numbers],
        "published_seeds": [nan if n is None or n.seeds is None else n.seeds for n in numbers],
    }
    measured = found[[header.metric, "std", "seeds"]].itertuples(index=False, name=None)
    pairs = zip(measured, *columns.values(), strict=True)
    ends = [
        (nan, nan) if pd.isna(n) or pd.isna(std) else welch_interval(own, (mean, std, int(n)))
        for own, mean, std, n in pairs
    ]
    low, high = zip(*ends, strict=True)
    difference = found[header.metric] - np.array(columns["published"])
    return {
        **columns,
        "difference": difference,
        "difference_low": low,
        "difference_high": high,
    }
