import math

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import same_color

from fedstage.errors import FedstageError
from fedstage.results.figures.comparison import describe_comparison, draw_comparison
from fedstage.results.figures.looks import looks_of

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


def test_no_point_hides_another_where_all_agree():
    same = table(top1_accuracy=[70.0] * 4, published=[70.0] * 4)
    for axes in draw(same).axes:
        heights = [y for hollow in (False, True) for _, y in points(axes, hollow)]
        assert len(heights) == 4
        assert np.diff(sorted(heights)).min() > 0.3


def test_points_are_of_the_tables_metric():
    areas = table().rename(columns={"top1_accuracy": "auc"}).assign(auc=[75.0, 65.0, 77.0, 70.0])
    first, _ = draw(areas).axes
    assert [x for x, _ in points(first)] == [75.0, 77.0]
    assert first.get_xlabel() == "AUC (%)"


def test_bars_are_the_deviations_of_both():
    spans = {
        tuple(np.round(segment[:, 0], 3))
        for axes in draw().axes
        for bars in axes.collections
        for segment in bars.get_segments()
    }
    assert spans == {(69.0, 71.0), (88.2, 88.8), (88.9, 89.3), (58.0, 62.0)}


def test_two_seeds_are_points_not_bars():
    (axes, _) = draw(table(seeds=[2] * 4, published_std=[NAN] * 4)).axes
    assert not axes.collections
    assert "small points: single seeds" in describe_comparison(table(seeds=[2] * 4))


def test_methods_look_as_in_the_other_figures_of_the_experiment():
    given = table(published=[NAN, NAN, 89.1, 80.0])
    colours = {line.get_color() for axes in draw(given).axes for line in axes.lines}
    assert looks_of(["fedavg", "fedsdd"])["fedsdd"].colour in colours
    assert looks_of(["fedavg", "fedsdd"])["fedavg"].colour not in colours
    assert rows_of(draw(given).axes[0]) == {0: "fedsdd"}


def test_an_axis_with_one_value_makes_no_facet(check_print):
    figure = draw(table(alpha=[1.0] * 4))
    check_print(figure)
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["measured", "published"]


def test_long_names_fit(check_print):
    names = ["SCAFFOLD (as released)", "One-round averaging, all samples", "FENS (INT8)", "FedKD"]
    given = table(method=names, alpha=[0.1] * 4, published=[80.0] * 4)
    check_print(draw(given))
    check_print(draw(pd.concat([given.assign(alpha=alpha) for alpha in (0.01, 0.05, 0.1)])))


def test_without_any_published_number_there_is_no_figure():
    with pytest.raises(FedstageError, match="no cell has a published number"):
        draw(table(published=[NAN] * 4))
    with pytest.raises(FedstageError, match="no cell has a published number"):
        draw(table().drop(columns=["published", "published_std"]))
