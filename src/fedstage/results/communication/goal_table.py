"""The table of Fed-ET's C_acc(x): parameters that all participants move up to an accuracy.

Cho et al. 2022, Section 4 and Table 3: one row per method, one column per data set.
"""

from collections.abc import Sequence
from statistics import fmean

from fedstage.results.communication.runs import RunTraffic
from fedstage.results.tables.columns import TextTable
from fedstage.results.tables.labels import NOTHING, human_count, join_labels, show_value

NEVER = "not reached"


def goal_table(
    runs: Sequence[RunTraffic], rows: Sequence[str], columns: Sequence[str], notes: Sequence[str]
) -> TextTable:
    """Return one line per value of the row axes, with one cell per value of the column axes.

    A cell is the mean over the seeds that reach the accuracy, with their number unless all do.
    Published numbers stand next to the cells of columns that have any.
    """
    cells: dict[tuple[str, ...], dict[str, list[RunTraffic]]] = {}
    compared: dict[str, bool] = {}  # whether a column has published numbers
    for run in runs:
        place = tuple(show_value(run.settings[axis]) for axis in rows)
        label = join_labels(columns, [run.settings[axis] for axis in columns])
        cells.setdefault(place, {}).setdefault(label, []).append(run)
        has = run.published_params is not None
        compared[label] = compared.get(label, False) or has
    heads, lines = [*rows], [[*place] for place in cells]
    for label, published in compared.items():
        column = [by_label.get(label, []) for by_label in cells.values()]
        heads.append(label or "Parameters")
        for line, seeds in zip(lines, column, strict=True):
            line.append(_measured(seeds))
        if published:
            heads.append(f"{label}: published" if label else "Published")
            for line, seeds in zip(lines, column, strict=True):
                line.append(_published(seeds))
    return TextTable(heads, lines, len(rows), notes)


def _published(seeds: Sequence[RunTraffic]) -> str:
    number = seeds[0].published_params if seeds else None
    return NOTHING if number is None else human_count(number)


def _measured(seeds: Sequence[RunTraffic]) -> str:
    """Write the mean of what seeds have sent; not reaching the accuracy is also a result."""
    reached = [run.reached.moved.params for run in seeds if run.reached is not None]
    if not seeds:
        return NOTHING
    if not reached:
        return NEVER
    text = human_count(fmean(reached))
    return text if len(reached) == len(seeds) else f"{text} ({len(reached)} of {len(seeds)} seeds)"
