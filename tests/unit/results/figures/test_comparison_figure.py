import math

import matplotlib.colors as mcolors
import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PathCollection

from fedstage.errors import FedstageError
from fedstage.results.figures.comparison import draw_comparison

NAN = math.nan


def table(**changes):
    columns = {
        "method": ["fedavg", "fedavg", "fedsdd", "fedsdd"],
        "alpha": [1.0, 0.1, 1.0, 0.1],
        "top1_accuracy": [70.0, 60.0, 72.0, 65.0],
        "std": [1.0, 2.0, NAN, 4.0],
        "published": [88.5, 78.7, 89.1, NAN],
        "published_std": [0.3, NAN, 0.2, NAN],
    }
    return pd.DataFrame(columns | changes)


def draw(given=None, rows=("method",), columns=("alpha",)):
    given = table() if given is None else given
    return draw_comparison(given, list(rows), list(columns), "A title", "A note.")


def points(figure):
    (axes,) = figure.axes
    (scatter,) = [found for found in axes.collections if isinstance(found, PathCollection)]
    return np.asarray(scatter.get_offsets())


def legend(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_a_point_a_cell_that_the_paper_has():
    np.testing.assert_allclose(points(draw()), [[88.5, 70.0], [78.7, 60.0], [89.1, 72.0]])


def test_points_are_of_the_tables_metric():
    areas = table().rename(columns={"top1_accuracy": "auc"}).assign(auc=[75.0, 65.0, 77.0, 70.0])
    figure = draw(areas)
    np.testing.assert_allclose(points(figure), [[88.5, 75.0], [78.7, 65.0], [89.1, 77.0]])
    (axes,) = figure.axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("Published AUC (%)", "Measured AUC (%)")


def test_bars_are_the_deviations_of_both():
    (axes,) = draw().axes
    segments = [s for c in axes.containers for bars in c.lines[2] for s in bars.get_segments()]
    spans = {tuple(np.round(np.ravel(s), 3)) for s in segments if len(s) and np.isfinite(s).all()}
    assert spans == {
        (88.2, 70.0, 88.8, 70.0),
        (88.9, 72.0, 89.3, 72.0),
        (88.5, 69.0, 88.5, 71.0),
        (78.7, 58.0, 78.7, 62.0),
    }


def test_both_axes_show_the_same_range_with_the_line_of_agreement():
    (axes,) = draw().axes
    assert axes.get_xlim() == axes.get_ylim()
    low, high = axes.get_xlim()
    assert low < 58.0
    assert high > 89.3
    assert axes.get_aspect() == 1.0
    (line,) = [line for line in axes.lines if line.get_linestyle() == "--"]
    assert (line.get_xy1(), line.get_slope()) == ((0, 0), 1)


def test_colours_are_methods_and_markers_the_other_axes():
    figure = draw()
    assert legend(figure) == ["fedavg", "fedsdd", "alpha = 1", "alpha = 0.1", "as published"]
    handles = figure.legends[0].legend_handles
    assert len({mcolors.to_hex(handle.get_color()) for handle in handles[:2]}) == 2
    assert handles[2].get_marker() != handles[3].get_marker()


def test_an_axis_with_one_value_needs_no_marker():
    assert legend(draw(table(alpha=[1.0] * 4))) == ["fedavg", "fedsdd", "as published"]


def test_title_and_note_stand_around_it():
    figure = draw()
    assert figure.get_suptitle() == "A title"
    assert figure.get_supxlabel() == "A note."


def test_without_any_published_number_there_is_no_figure():
    with pytest.raises(FedstageError, match="A title: no cell has a published number"):
        draw(table(published=[NAN] * 4))
    with pytest.raises(FedstageError, match="A title: no cell has a published number"):
        draw(table().drop(columns=["published", "published_std"]))
