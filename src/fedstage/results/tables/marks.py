"""Marks of a result table: the best federated method, and methods not distinguished from it.

Each column is ranked by itself, within a block: the lines that share all row axes but the last,
such as the methods of one model. A star marks methods that do not differ from the best by the test
of `fedstage compare`: paired over seeds, with Holm's correction over the comparisons of the column.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import isnan

from fedstage.results.intervals import LEVEL, holm, p_of_differences, paired
from fedstage.results.tables.layout import Layout, Mark, TextColumn

_NOTE = (
    "**Bold**: the highest mean of a federated method in its column and block; those trained on "
    "pooled data, or by each client alone, are not ranked. "
)
_TESTED = (
    "A star: not distinguished from it by the paired t-test over seeds (p > 0.05, with Holm's "
    "correction over the comparisons in the column); published numbers are not tested."
)
_UNTESTED = "With a single seed no test tells others apart from it."


def marked(layout: Layout) -> Layout:
    """Return a table with marks on its cells, and a line of the legend about their meaning."""
    blocks = layout.blocks()
    columns = [replace(column, marks=_marks(column, blocks)) for column in layout.columns]
    means = [mean for column in layout.columns for mean in column.means if not isnan(mean.value)]
    tested = any(len(mean.by_seed) > 1 for mean in means)
    notes = [_NOTE + (_TESTED if tested else _UNTESTED)] if means else []
    return replace(layout, columns=columns, legend=[*layout.legend, *notes])


def _marks(column: TextColumn, blocks: Sequence[Sequence[int]]) -> list[Mark]:
    marks: list[Mark] = [""] * len(column.texts)
    others: dict[int, list[float]] = {}
    for block in blocks if column.means else []:
        means = {place: column.means[place] for place in block}
        ranked = {place: mean for place, mean in means.items() if not isnan(mean.value)}
        if len({mean.value for mean in ranked.values()}) < 2:
            continue
        best = max(ranked.values(), key=lambda mean: mean.value)
        for place, mean in ranked.items():
            if mean.value == best.value:
                marks[place] = "best"
            else:
                others[place] = paired(best.by_seed, mean.by_seed)
    p_values = holm([p_of_differences(differences) for differences in others.values()])
    for (place, differences), p_value in zip(others.items(), p_values, strict=True):
        if len(differences) > 1 and p_value > LEVEL:
            marks[place] = "star"
    return marks
