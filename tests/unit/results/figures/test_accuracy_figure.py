import statistics

import matplotlib.colors as mcolors
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot

from fedstage.results.figures.accuracy import draw_accuracy, line_axis

TITLE = "A title"
ROUNDS = 4


def accuracy(method, seed, round, alpha=0.1):
    return 20.0 * len(method) / 4 + 3 * round + seed * (1 + round) + alpha


def runs(methods, seeds=(0, 1), once=(), alphas=(0.1,)):
    rows = [
        {
            "run": (method, seed, alpha),
            "method": method,
            "seed": seed,
            "alpha": alpha,
            "role": "test",
            "round": round,
            "top1_accuracy": accuracy(method, seed, round, alpha),
        }
        for method in methods
        for alpha in alphas
        for seed in seeds
        for round in ([ROUNDS] if method in once else range(1, ROUNDS + 1))
    ]
    return pd.DataFrame(rows)


def legend_of(figure):
    (legend,) = figure.legends
    return legend


def test_another_metric_may_be_drawn():
    frame = runs(["fedavg"]).assign(balanced_accuracy=lambda frame: frame["top1_accuracy"] - 9.0)
    figure = draw_accuracy(frame, ["method"], [], TITLE, "balanced_accuracy")
    (axes,) = figure.axes
    assert axes.get_ylabel() == "Balanced accuracy, test (%)"
    plain = draw_accuracy(frame, ["method"], [], TITLE).axes[0]
    np.testing.assert_allclose(
        axes.lines[0].get_ydata(), np.asarray(plain.lines[0].get_ydata()) - 9.0
    )


def colour(line):
    return mcolors.to_hex(line.get_color())


def test_a_line_a_method_with_the_mean_over_seeds():
    methods = ["scaffold", "fedavg", "feddf"]
    figure = draw_accuracy(runs(methods), ["method"], [], TITLE)
    (axes,) = figure.axes
    assert len(axes.lines) == len(methods)
    for method, line in zip(methods, axes.lines, strict=True):
        expected = [
            statistics.mean(accuracy(method, seed, round) for seed in (0, 1))
            for round in range(1, ROUNDS + 1)
        ]
        np.testing.assert_allclose(line.get_xdata(), range(1, ROUNDS + 1))
        np.testing.assert_allclose(line.get_ydata(), expected)


def test_the_band_is_one_deviation_over_seeds():
    figure = draw_accuracy(runs(["fedavg"], seeds=(0, 1, 2)), ["method"], [], TITLE)
    (band,) = figure.axes[0].collections
    vertices = band.get_paths()[0].vertices
    last = [accuracy("fedavg", seed, ROUNDS) for seed in (0, 1, 2)]
    heights = vertices[vertices[:, 0] == ROUNDS, 1]
    mean, deviation = statistics.mean(last), statistics.stdev(last)
    assert heights.min() == pytest.approx(mean - deviation)
    assert heights.max() == pytest.approx(mean + deviation)


def test_a_single_seed_has_no_band():
    figure = draw_accuracy(runs(["fedavg", "local"], [0], once=["local"]), ["method"], [], TITLE)
    assert len(figure.axes[0].collections) == 0
    assert len(figure.axes[0].patches) == 0


def test_what_is_evaluated_once_is_a_dashed_horizontal_line_with_its_band():
    frame = runs(["fedavg", "local"], once=["local"])
    figure = draw_accuracy(frame, ["method"], [], TITLE)
    (axes,) = figure.axes
    level, curve = axes.lines
    values = [accuracy("local", seed, ROUNDS) for seed in (0, 1)]
    assert level.get_linestyle() == "--"
    assert set(level.get_ydata()) == {statistics.mean(values)}
    assert curve.get_linestyle() == "-"
    (band,) = axes.patches
    assert band.get_height() == pytest.approx(2 * statistics.stdev(values))


def test_the_legend_names_the_lines_in_the_order_of_the_runs_as_they_are_drawn():
    frame = runs(["local", "scaffold", "fedavg"], once=["local"])
    figure = draw_accuracy(frame, ["method"], [], TITLE)
    legend = legend_of(figure)
    assert [text.get_text() for text in legend.get_texts()] == ["local", "scaffold", "fedavg"]
    assert legend.get_title().get_text() == "method"
    drawn = {(colour(line), line.get_linestyle()) for line in figure.axes[0].lines}
    assert {(colour(line), line.get_linestyle()) for line in legend.get_lines()} == drawn
    assert len(drawn) == 3


def test_the_legend_does_not_cover_the_axes():
    figure = draw_accuracy(runs(["fedavg", "a_method_of_a_long_name"]), ["method"], [], TITLE)
    figure.draw_without_rendering()
    assert legend_of(figure).get_window_extent().x0 > figure.axes[0].get_window_extent().x1


def test_labels_say_what_is_measured_and_on_what():
    figure = draw_accuracy(runs(["fedavg"]), ["method"], [], TITLE)
    (axes,) = figure.axes
    assert axes.get_xlabel() == "Round"
    assert axes.get_ylabel() == "Top-1 accuracy, test (%)"
    assert figure.get_suptitle() == TITLE
    assert "2 seeds" in figure.get_supxlabel()


def test_rounds_are_whole_numbers():
    figure = draw_accuracy(runs(["fedavg"]), ["method"], [], TITLE)
    figure.draw_without_rendering()
    ticks = figure.axes[0].get_xticks()
    assert len(ticks) > 1
    assert all(float(tick).is_integer() for tick in ticks)


def test_further_axes_are_facets_on_one_scale():
    frame = runs(["fedavg", "scaffold"], alphas=(1.0, 0.1))
    figure = draw_accuracy(frame, ["method"], ["alpha"], TITLE)
    assert [axes.get_title() for axes in figure.axes] == ["alpha = 1", "alpha = 0.1"]
    assert [len(axes.lines) for axes in figure.axes] == [2, 2]
    assert figure.axes[0].get_ylim() == figure.axes[1].get_ylim()
    for axes, alpha in zip(figure.axes, (1.0, 0.1), strict=True):
        expected = statistics.mean(accuracy("fedavg", seed, ROUNDS, alpha) for seed in (0, 1))
        assert axes.lines[0].get_ydata()[-1] == pytest.approx(expected)


def test_lowest_facet_of_each_column_has_the_round_axis():
    frame = runs(["fedavg"], alphas=(0.1, 0.2, 0.3, 0.4, 0.5))
    figure = draw_accuracy(frame, ["method"], ["alpha"], TITLE)
    assert [axes.get_xlabel() for axes in figure.axes] == ["", "", "Round", "Round", "Round"]


def test_an_axis_of_one_value_makes_no_facet():
    figure = draw_accuracy(runs(["fedavg"]), ["alpha", "method"], [], TITLE)
    assert [axes.get_title() for axes in figure.axes] == [""]


def test_lines_are_methods_wherever_they_stand_among_the_rows():
    assert line_axis(["model", "method"]) == "method"
    assert line_axis(["Model", "Method"]) == "Method"
    assert line_axis(["model", "data"]) == "model"


def test_without_a_course_over_rounds_there_is_no_round_axis():
    frame = runs(["local", "pooled"], once=["local", "pooled"])
    (axes,) = draw_accuracy(frame, ["method"], [], TITLE).axes
    assert [line.get_linestyle() for line in axes.lines] == ["--", "--"]
    assert axes.get_xlabel() == ""
    assert len(axes.get_xticks()) == 0


def test_more_methods_than_the_palette_have_colours_of_their_own():
    methods = [f"method_{i:02}" for i in range(14)]
    (axes,) = draw_accuracy(runs(methods), ["method"], [], TITLE).axes
    assert len({colour(line) for line in axes.lines}) == 14


def test_drawing_leaves_no_figure_open_and_no_style_behind():
    before = dict(pyplot.rcParams)
    draw_accuracy(runs(["fedavg"]), ["method"], [], TITLE)
    assert pyplot.get_fignums() == []
    assert dict(pyplot.rcParams) == before
