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
