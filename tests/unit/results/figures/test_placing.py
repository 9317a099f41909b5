"""Facets, and labels on a scale of bytes."""

from itertools import pairwise

import pandas as pd
import pytest
from matplotlib.figure import Figure

from fedstage.results.figures.placing import FACET, placed, scale_bytes


def test_a_facet_names_what_varies_only():
    frame = pd.DataFrame({"Method": ["a", "b"], "α": [0.1, 0.1], "K": [1, 2]})
    assert list(placed(frame, "Method", list(frame))[FACET]) == ["K = 1", "K = 2"]


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
