"""Facets, and labels on a scale of bytes."""

from itertools import pairwise, product

import pandas as pd
import pytest
from matplotlib.figure import Figure

from fedstage.results.figures.placing import grid_columns, scale_bytes


def columns_of(places):
    frame = pd.DataFrame(places, columns=["rate", "α"]).assign(Method="a")
    return grid_columns(pd.concat([frame, frame]), "Method", ["rate", "Method", "α"])


def test_facets_of_two_axes_form_a_grid():
    assert columns_of(product([0.01, 0.03, 0.1, 0.3], [0.1, 1.0])) == 2
    assert columns_of(product([0.01, 0.03], [0.1, 0.3, 1.0, "iid"])) == 4


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (35e3, 82e3), (1e3, 2.2e3), (9e3, 1.1e5), (1.0, 10.0), (1e3, 1e12), (5e5, 1.05e6),
        (55e3, 165e3), (110e3, 130e3),
    ],
)  # fmt: skip
def test_labels_of_bytes_do_not_touch_each_other(low, high):
    figure = Figure(figsize=(3.4, 2.0))
    axes = figure.subplots()
    scale_bytes(axes, low / 1.2, low, high, 30.0, None)
    figure.canvas.draw()
    boxes = [
        label.get_window_extent()
        for tick, label in zip(axes.get_xticks(), axes.get_xticklabels(), strict=True)
        if low <= tick <= high
    ]
    assert len(boxes) >= (3 if high > 2.2 * low else 2)
    for left, right in pairwise(boxes):
        assert left.x1 < right.x0
