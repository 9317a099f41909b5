import math

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from fedstage.results.figures.looks import looks_of
from fedstage.results.figures.seeds import (
    draw_curve,
    draw_dot,
    explain_seeds,
    spread_of,
    spread_of_cell,
)
from fedstage.results.intervals import confidence_interval

LOOKS = looks_of(["a", "b", "c"])
POINTS = range(1, 11)


def runs(seeds):
    rows = [
        {"seed": seed, "round": t, "score": 5.0 * t + seed**2}
        for seed in range(seeds)
        for t in POINTS
    ]
    return pd.DataFrame(rows)


def curve(seeds, turn=(0, 1)):
    axes = Figure().subplots()
    draw_curve(axes, runs(seeds), "round", "score", LOOKS["a"], turn)
    return axes


def test_bands_are_the_interval_of_the_mean_a_deviation_or_nothing():
    values = [1.0, 2.0, 6.0, 7.0]
    interval = confidence_interval(values)
    assert spread_of(values, "interval").half == pytest.approx(interval.high - 4.0)
    assert spread_of(values, "deviation").half == pytest.approx(np.std(values, ddof=1))
    assert math.isnan(spread_of(values, "none").half)
    heights = {}
    for bands in ("interval", "deviation", "none"):
        axes = Figure().subplots()
        draw_curve(axes, runs(3), "round", "score", LOOKS["a"], bands=bands)
        ends = [band.get_paths()[0].vertices[:, 1] for band in axes.collections]
        heights[bands] = max((one.max() for one in ends), default=None)
    last = confidence_interval([50.0, 51.0, 54.0])
    assert heights["interval"] == pytest.approx(last.high)
    assert heights["deviation"] < heights["interval"]
    assert heights["none"] is None
    assert "95 % confidence interval" in explain_seeds([3], curves=True, bands="interval")
    assert explain_seeds([3], curves=True, bands="none") == "Mean over 3 seeds."


def test_bands_and_bars_end_at_what_a_percentage_may_be():
    rows = [
        (seed, t, 100.0 - 3 * seed if t == 1 else 3.0 * seed) for seed in range(3) for t in (1, 2)
    ]
    axes = Figure().subplots()
    draw_curve(
        axes,
        pd.DataFrame(rows, columns=["seed", "round", "score"]),
        "round",
        "score",
        LOOKS["a"],
        bands="interval",
    )
    heights = axes.collections[0].get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (0.0, 100.0)
    axes = Figure().subplots()
    draw_dot(axes, 1, spread_of([100.0, 97.0, 94.0], "interval"), LOOKS["a"])
    low, high = axes.collections[0].get_segments()[0][:, 1]
    assert (low, high) == (pytest.approx(confidence_interval([100.0, 97.0, 94.0]).low), 100.0)
    axes = Figure().subplots()
    points = pd.DataFrame(
        [(s, t, 3.0 * s) for s in range(3) for t in (1, 2)], columns=["seed", "round", "forget"]
    )
    draw_curve(axes, points, "round", "forget", LOOKS["a"], bands="interval", within=(-100, 100))
    assert axes.collections[0].get_paths()[0].vertices[:, 1].min() < 0


def test_seeds_beside_a_mean_are_within_the_axes():
    axes = Figure().subplots()
    draw_dot(axes, 1, spread_of([40.0, 60.0]), LOOKS["a"])
    draw_dot(axes, 2, spread_of([50.0, 51.0]), LOOKS["b"])
    low, high = axes.get_ylim()
    assert low < 40.0 < 60.0 < high
    assert not any(line.get_clip_on() for line in axes.lines)


@pytest.mark.parametrize(("points", "lines"), [(2, 5), (3, 5), (5, 5), (10, 5), (10, 3)])
def test_each_of_several_curves_has_two_markers_or_more(points, lines):
    some = runs(3)[lambda frame: frame["round"] <= points]
    for turn in range(lines):
        axes = Figure().subplots()
        draw_curve(axes, some, "round", "score", LOOKS["a"], (turn, lines))
        assert len(axes.lines[1].get_xdata()) >= 2


def test_two_seeds_have_no_band_but_lines_of_their_own():
    axes = curve(2)
    assert not axes.collections
    mean, _, *singles = axes.lines
    assert [list(one.get_ydata())[-1] for one in singles] == [50.0, 51.0]
    assert list(mean.get_ydata())[-1] == 50.5
    assert all(one.get_linewidth() < mean.get_linewidth() for one in singles)


def test_one_seed_is_one_line():
    axes = curve(1)
    assert not axes.collections
    assert len(axes.lines) == 2


def test_lines_of_the_same_course_do_not_cover_their_markers():
    seen = [tuple(curve(3, (turn, 3)).lines[1].get_xdata()) for turn in range(3)]
    assert all(seen)
    assert len({x for one in seen for x in one}) == sum(map(len, seen))


def test_a_dot_has_a_bar_from_three_seeds_on_and_else_its_seeds():
    axes = Figure().subplots()
    draw_dot(axes, 1, spread_of([1.0, 2.0, 6.0]), LOOKS["a"])
    (bar,) = axes.collections
    assert np.ptp(bar.get_segments()[0][:, 1]) == pytest.approx(2 * np.std([1, 2, 6], ddof=1))
    axes = Figure().subplots()
    draw_dot(axes, 1, spread_of([1.0, 3.0]), LOOKS["a"])
    assert not axes.collections
    assert [float(line.get_ydata()[0]) for line in axes.lines] == [2.0, 1.0, 3.0]
    assert len({str(line.get_transform()) for line in axes.lines}) == 2  # seeds beside the mean


def test_cells_of_tables_tell_two_seeds_from_more():
    assert spread_of_cell(2.0, math.sqrt(2), 2).singles == pytest.approx((1.0, 3.0))
    assert spread_of_cell(2.0, 1.5, 3) == (2.0, 1.5, ())
    assert spread_of_cell(2.0, 1.5, math.nan).half == 1.5  # as a paper reports it
    assert math.isnan(spread_of_cell(2.0, math.nan, 1).half)


@pytest.mark.parametrize(
    ("counts", "told"),
    [
        ([1], "A single seed."),
        ([2, 2], "Mean over 2 seeds; thin lines and small points: single seeds."),
        ([3], "Mean over 3 seeds; bands and bars: ± 1 standard deviation (n − 1)."),
        (
            [2, 5],
            "Mean over 2 to 5 seeds; bands and bars: ± 1 standard deviation (n − 1), from three "
            "seeds on; thin lines and small points: single seeds, of two.",
        ),
    ],
)
def test_captions_say_what_bands_are(counts, told):
    assert explain_seeds(counts, curves=True) == told
