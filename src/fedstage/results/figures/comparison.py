"""Measured and published numbers: one row per method, one facet per value of the other axes."""

from collections.abc import Mapping, Sequence
from math import nan

import pandas as pd
from matplotlib.figure import Figure

from fedstage.errors import FedstageError
from fedstage.results.figures.looks import NONE, Look, looks_of
from fedstage.results.figures.placing import FACET, LINE, line_axis, placed
from fedstage.results.figures.seeds import Dot, draw_rows, explain_seeds, spread_of_cell
from fedstage.results.figures.style import style
from fedstage.results.tables.labels import head_of, show_value
from fedstage.results.tables.runs import PUBLISHED, PUBLISHED_STD
from fedstage.results.tables.summary import is_compared, metric_of


@style()
def draw_comparison(
    table: pd.DataFrame,
    rows: Sequence[str],
    columns: Sequence[str],
    given: Mapping[str, Look] = NONE,
) -> Figure:
    """Draw the measured and the published number of each cell of a table that has both.

    Rows are the values of `line_axis(rows)`; all other axes of the table that vary give the facets.
    `given` are looks of rows by their labels.

    Raises
    ------
    FedstageError
        If no cell has a published number.
    """
    shown = _compared(table)
    if shown.empty:
        raise FedstageError("no cell has a published number, at least one is required")
    axis, metric = line_axis(rows), metric_of(table)
    looks = looks_of(map(show_value, table[axis].unique()), given)
    dots = [
        Dot(
            cell[FACET],
            cell[LINE],
            spread_of_cell(cell[metric], cell["std"], cell["seeds"]),
            spread_of_cell(cell[PUBLISHED], cell[PUBLISHED_STD], nan),
        )
        for cell in placed(shown, axis, [*rows, *columns]).to_dict("records")
    ]
    names = [name for name in looks if any(dot.name == name for dot in dots)]
    return draw_rows(dots, names, looks, head_of(metric), axis)


def describe_comparison(table: pd.DataFrame) -> str:
    """Return the caption's text on the points of `draw_comparison`."""
    seeds = explain_seeds(_compared(table)["seeds"], curves=False)
    return f"Filled: measured. {seeds} Open: published, with the deviation that the paper reports."


def _compared(table: pd.DataFrame) -> pd.DataFrame:
    return table[table[PUBLISHED].notna()] if is_compared(table) else table.head(0)
