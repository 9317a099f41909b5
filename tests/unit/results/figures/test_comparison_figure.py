import math

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import same_color

from fedstage.errors import FedstageError
from fedstage.results.figures.comparison import draw_comparison

NAN = math.nan


def table(**changes):
    columns = {
        "method": ["fedavg", "fedavg", "fedsdd", "fedsdd"],
        "alpha": [1.0, 0.1, 1.0, 0.1],
        "top1_accuracy": [70.0, 60.0, 72.0, 65.0],
        "std": [1.0, 2.0, NAN, 4.0],
        "seeds": [3, 3, 1, 3],
        "published": [88.5, 78.7, 89.1, NAN],
        "published_std": [0.3, NAN, 0.2, NAN],
    }
    return pd.DataFrame(columns | changes)


def draw(given=None, rows=("method",), columns=("alpha",)):
    given = table() if given is None else given
    return draw_comparison(given, list(rows), list(columns))


def points(axes, hollow=False):
    """The x and y of each point."""
    found = [line for line in axes.lines if line.get_marker() not in ("None", None, "|", "_")]
    shown = [line for line in found if same_color(line.get_markerfacecolor(), "white") == hollow]
    return [tuple(float(values[0]) for values in line.get_data()) for line in shown]


def rows_of(axes):
    return dict(
        zip(axes.get_yticks(), (one.get_text() for one in axes.get_yticklabels()), strict=True)
    )


def test_a_row_a_method_and_a_facet_a_point_of_the_other_axes(check_print):
    figure = draw()
    one, other = figure.axes
    assert [axes.get_title() for axes in figure.axes] == ["alpha = 1", "alpha = 0.1"]
    assert rows_of(one) == {0: "fedavg", 1: "fedsdd"}
    assert [x for x, _ in points(one)] == [70.0, 72.0]
    assert [x for x, _ in points(one, hollow=True)] == [88.5, 89.1]
    assert [x for x, _ in points(other)] == [60.0]  # the paper has no other
    check_print(figure)


def test_bars_are_the_deviations_of_both():
    spans = {
        tuple(np.round(segment[:, 0], 3))
        for axes in draw().axes
        for bars in axes.collections
        for segment in bars.get_segments()
    }
    assert spans == {(69.0, 71.0), (88.2, 88.8), (88.9, 89.3), (58.0, 62.0)}


def test_without_any_published_number_there_is_no_figure():
    with pytest.raises(FedstageError, match="no cell has a published number"):
        draw(table(published=[NAN] * 4))
    with pytest.raises(FedstageError, match="no cell has a published number"):
        draw(table().drop(columns=["published", "published_std"]))
