import statistics

import matplotlib.colors as mcolors
import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PolyCollection

from fedstage.results.figures.accuracy import describe_accuracy, draw_accuracy
from fedstage.results.figures.looks import LINE_WIDTH, MARKERS

ROUNDS = 4


def accuracy(method, seed, round_, alpha=0.1):
    return 20.0 * len(method) / 4 + 3 * round_ + seed * (1 + round_) + alpha


def runs(methods, seeds=(0, 1), once=(), alphas=(0.1,)):
    rows = [
        {
            "run": (method, seed, alpha),
            "method": method,
            "seed": seed,
            "alpha": alpha,
            "role": "test",
            "round": round_,
            "top1_accuracy": accuracy(method, seed, round_, alpha),
        }
        for method in methods
        for alpha in alphas
        for seed in seeds
        for round_ in ([ROUNDS] if method in once else range(1, ROUNDS + 1))
    ]
    return pd.DataFrame(rows)


def legend_of(figure):
    (legend,) = figure.legends
    return legend


def colour(line):
    return mcolors.to_hex(line.get_color())


def curves(axes):
    """The lines of means over rounds."""
    return [
        line
        for line in axes.lines
        if line.get_linewidth() == LINE_WIDTH and len(line.get_xdata()) > 2
    ]


def dots(axes):
    """The points beside the curves, or in rows: x, y and colour."""
    shown = [
        line for line in axes.lines if line.get_marker() in MARKERS and line.get_markersize() > 3
    ]
    found = [line for line in shown if len(line.get_xdata()) == 1 and line not in curves(axes)]
    return [(float(one.get_xdata()[0]), float(one.get_ydata()[0]), colour(one)) for one in found]


def test_a_line_a_method_with_the_mean_over_seeds():
    methods = ["scaffold", "fedavg", "feddf"]
    figure = draw_accuracy(runs(methods), ["method"], [])
    (axes,) = figure.axes
    assert len(curves(axes)) == len(methods)
    for method, line in zip(methods, curves(axes), strict=True):
        expected = [
            statistics.mean(accuracy(method, seed, round_) for seed in (0, 1))
            for round_ in range(1, ROUNDS + 1)
        ]
        np.testing.assert_allclose(line.get_xdata(), range(1, ROUNDS + 1))
        np.testing.assert_allclose(line.get_ydata(), expected)


def test_what_is_evaluated_once_is_a_named_horizontal_line_with_its_bar():
    frame = runs(["fedavg", "local"], seeds=(0, 1, 2), once=["local"])
    figure = draw_accuracy(frame, ["method"], [], bands="deviation")
    (axes,) = figure.axes
    assert len(curves(axes)) == 1
    values = [accuracy("local", seed, ROUNDS) for seed in (0, 1, 2)]
    x, y, _ = dots(axes)[-1]
    assert y == pytest.approx(statistics.mean(values))
    assert x > ROUNDS
    bars = [one for one in axes.collections if not isinstance(one, PolyCollection)]
    ends = bars[-1].get_segments()[0][:, 1]
    assert np.ptp(ends) == pytest.approx(2 * statistics.stdev(values))
    assert not axes.patches
    (level,) = [line for line in axes.lines if colour(line) == _ and len(line.get_xdata()) == 2]
    assert list(level.get_ydata()) == [y, y]
    (name,) = axes.texts
    assert (name.get_text(), mcolors.to_hex(name.get_color())) == ("local", _)
    assert [text.get_text() for text in legend_of(figure).get_texts()] == ["fedavg"]
    assert "Horizontal lines: methods" in describe_accuracy(frame, ["method"], [])


def test_further_axes_are_facets_on_one_scale():
    frame = runs(["fedavg", "scaffold"], alphas=(1.0, 0.1))
    figure = draw_accuracy(frame, ["method"], ["alpha"])
    assert [axes.get_title() for axes in figure.axes] == ["alpha = 1", "alpha = 0.1"]
    assert [len(curves(axes)) for axes in figure.axes] == [2, 2]
    assert figure.axes[0].get_ylim() == figure.axes[1].get_ylim()
    for axes, alpha in zip(figure.axes, (1.0, 0.1), strict=True):
        expected = statistics.mean(accuracy("fedavg", seed, ROUNDS, alpha) for seed in (0, 1))
        assert curves(axes)[0].get_ydata()[-1] == pytest.approx(expected)


def by_rate(methods, rates=(0.01, 0.03, 0.1), alphas=(0.1, 1.0), once=()):
    """Runs at each point of two further axes, the rate first."""
    frames = [runs(methods, alphas=alphas, once=once).assign(rate=rate) for rate in rates]
    frame = pd.concat(frames, ignore_index=True)
    return frame.assign(run=list(zip(frame["run"], frame["rate"], strict=True)))


@pytest.mark.parametrize("once", [(), ("fedavg", "scaffold")], ids=["curves", "rows"])
@pytest.mark.parametrize("alphas", [(0.1, 1.0), (0.1, 0.3, 1.0, 10.0)], ids=len)
def test_facets_of_two_axes_have_one_across_and_one_down(alphas, once, check_print):
    frame = by_rate(["fedavg", "scaffold"], alphas=alphas, once=once)
    figure = draw_accuracy(frame, ["rate", "method"], ["alpha"])
    check_print(figure)
    places = [axes.get_subplotspec() for axes in figure.axes]
    titles = {
        (place.rowspan.start, place.colspan.start): " ".join(axes.get_title().split())
        for place, axes in zip(places, figure.axes, strict=True)
    }
    assert titles == {
        (down, across): f"rate = {rate:g}, alpha = {alpha:g}"
        for down, rate in enumerate((0.01, 0.03, 0.1))
        for across, alpha in enumerate(alphas)
    }


def test_without_a_course_over_rounds_methods_are_rows(check_print):
    frame = runs(["local", "pooled"], once=["local", "pooled"], alphas=(0.1, 0.2))
    figure = draw_accuracy(frame, ["method"], ["alpha"])
    first, _ = figure.axes
    assert [label.get_text() for label in first.get_yticklabels()] == ["local", "pooled"]
    expected = [
        statistics.mean(accuracy(one, seed, ROUNDS) for seed in (0, 1))
        for one in ("local", "pooled")
    ]
    assert [x for x, _, _ in dots(first)] == pytest.approx(expected)
    assert (first.get_xlabel(), figure.legends) == ("Top-1 accuracy (%)", [])
    assert describe_accuracy(frame, ["method"], ["alpha"]).startswith("Last evaluated round on")
    check_print(figure)


def test_more_than_five_curves_have_a_panel_each_before_the_others_in_grey(check_print):
    methods = [f"method {i}" for i in range(6)]
    frame = runs([*methods, "pooled"], seeds=(0, 1, 2), once=["pooled"])
    figure = draw_accuracy(frame, ["method"], [])
    check_print(figure)
    assert [axes.get_title() for axes in figure.axes] == methods
    assert not figure.legends
    for axes, method in zip(figure.axes, methods, strict=True):
        (curve,) = curves(axes)
        expected = statistics.mean(accuracy(method, seed, ROUNDS) for seed in (0, 1, 2))
        assert curve.get_ydata()[-1] == pytest.approx(expected)
        grey = [line for line in axes.lines if line.get_color() == "0.8"]
        assert len(grey) == 5
        assert [text.get_text() for text in axes.texts] == ["pooled"]
    assert "In grey" in describe_accuracy(frame, ["method"], [])
    assert len(draw_accuracy(runs(methods[:5]), ["method"], []).axes) == 1
