"""A metric over an axis, of tables made by hand."""

import math

import numpy as np
import pandas as pd
import pytest

from fedstage.results.figures.sweep import draw_sweep, scale_of

NAN = math.nan


def table(**changes):
    columns = {
        "method": ["fens", "fens", "fens", "fedkd", "fedkd", "fedkd"],
        "clients": [5, 10, 50, 5, 10, 50],
        "top1_accuracy": [77.0, 76.0, 70.0, 71.0, 66.0, 59.0],
        "std": [2.0, 1.0, NAN, 4.0, 5.0, 3.0],
        "seeds": [3, 3, 1, 3, 3, 3],
    }
    return pd.DataFrame(columns | changes)


def draw(given=None, over="clients", rows=("method",), columns=("clients",)):
    given = table() if given is None else given
    return draw_sweep(given, over, list(rows), list(columns))


def curves(axes):
    """The points of each measured line."""
    lines = [line for line in axes.lines if line.get_linestyle() != "None"]
    return [np.asarray(line.get_xydata(), dtype=float) for line in lines]


def legend(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_numbers_are_placed_by_size_with_a_tick_at_each():
    figure = draw()
    (axes,) = figure.axes
    fens, fedkd = curves(axes)
    np.testing.assert_allclose(fens[:, 1], [77.0, 76.0, 70.0])
    np.testing.assert_allclose(fedkd[:, 1], [71.0, 66.0, 59.0])
    places = [0, 2 * math.log10(2), 2]  # 10 is that part of the decade from 5 to 50
    np.testing.assert_allclose(fens[:, 0], places, atol=0.1)
    np.testing.assert_allclose(axes.get_xticks(), places)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["5", "10", "50"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("clients", "Top-1 accuracy (%)")
    assert legend(figure) == ["fens", "fedkd"]


def test_methods_are_lines_and_all_other_axes_facets(check_print):
    given = pd.concat(
        [table().assign(alpha=alpha, model=model) for alpha in (1.0, 0.1) for model in ("a", "b")]
    )
    figure = draw(given, rows=("model", "method"), columns=("alpha", "clients"))
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == ["a, alpha = 1", "b, alpha = 1", "a, alpha = 0.1", "b, alpha = 0.1"]
    assert legend(figure) == ["fens", "fedkd"]
    assert all(len(curves(axes)) == 2 for axes in figure.axes)
    check_print(figure)


def test_what_a_paper_reports_is_open_where_it_reports_anything():
    reported = [77.7, 76.4, 70.5, NAN, NAN, NAN]
    given = table(published=reported, published_std=[NAN] * 6, published_seeds=[3] * 6)
    figure = draw(given)
    (axes,) = figure.axes
    shown = [line for line in axes.lines if line.get_markerfacecolor() == "white"]
    assert [float(line.get_ydata()[0]) for line in shown] == reported[:3]
    assert legend(figure) == ["fens", "fedkd", "as published"]
    without = draw(given.assign(published=NAN))
    assert legend(without) == ["fens", "fedkd"]


def test_a_zero_is_beside_a_logarithmic_scale(check_print):
    figure = draw(table(clients=[0.0, 0.01, 0.1] * 2))
    (axes,) = figure.axes
    np.testing.assert_allclose(axes.get_xticks(), [0, 1, 2])
    rules = [line for line in axes.lines if list(line.get_xdata()) == [0.5, 0.5]]
    assert len(rules) == 1
    check_print(figure)


# --- scales of tried values -----------------------------------------------------------------------


CASES = {
    "linear": ([1, 2, 5], [0, 0.5, 2], False),
    "a factor of less than ten": ([0.02, 0.1, 0.19], [0, 16 / 17, 2], False),
    "a factor of ten": ([0.01, 0.03, 0.1], [0, 2 * math.log10(3), 2], False),
    "in any order": ([0.1, 0.001, 0.01], [0, 1, 2], False),
    "zero and a factor of ten": ([0, 0.1, 0.01, 0.001], [0, 1, 2, 3], True),
    "zero and less": ([0, 1, 4], [0, 0.5, 2], False),
    "negative": ([-1, 1, 100], [0, 4 / 101, 2], False),
    "a single one": ([0.1], [0], False),
    "texts": (["b", "a"], [0, 1], False),
    "truths": ([True, False], [0, 1], False),
    "none among numbers": ([0.1, None, 1.0], [0, 1, 2], False),
}


@pytest.mark.parametrize(("values", "places", "broken"), CASES.values(), ids=CASES)
def test_places(values, places, broken):
    scale = scale_of(pd.Series(values))
    assert list(scale.places.values()) == pytest.approx(places)
    assert scale.broken == broken
    assert set(scale.places) == {str(value).lower() for value in values} or "none" in scale.places


def test_labels_are_turned_where_they_are_close_and_left_out_where_they_overlap():
    assert scale_of(pd.Series([0.01, 0.1, 1.0])).labels(3.0) == (["0.01", "0.1", "1"], False)
    assert scale_of(pd.Series([0.01, 0.02, 1.0])).labels(2.0) == (["0.01", "0.02", "1"], True)
    assert scale_of(pd.Series([0.01, 0.0101, 1.0])).labels(3.0) == (["0.01", "", "1"], True)
