"""Circles of given areas that share a given one."""

from math import pi

import numpy as np
import pytest

from fedstage.results.retention.venn import circles, shared_area


def counted(one, other, distance, points=2000):
    """The shared area of two circles, from the points of a fine grid that are in both."""
    side = np.linspace(-one, one, points)
    x, y = np.meshgrid(side, side)
    both = (x**2 + y**2 <= one**2) & ((x - distance) ** 2 + y**2 <= other**2)
    return both.mean() * (2 * one) ** 2


@pytest.mark.parametrize(
    ("one", "other", "distance"), [(1, 1, 1), (2, 1, 1.5), (1, 2, 1.2), (1, 0.5, 0.6), (3, 3, 0.2)]
)
def test_the_area_that_circles_share(one, other, distance):
    expected = counted(one, other, distance)
    assert shared_area(one, other, distance) == pytest.approx(expected, rel=2e-3)


@pytest.mark.parametrize(
    "counts", [(3, 4, 5), (70, 19, 235), (5, 0, 5), (0, 5, 5), (0, 0, 7), (6, 2, 0), (0.5, 300, 1)]
)
def test_areas_are_the_counts(counts):
    lost, gained, retained = counts
    pair = circles(lost, gained, retained)
    assert pi * pair.before**2 == pytest.approx(lost + retained)
    assert pi * pair.after**2 == pytest.approx(gained + retained)
    shared = shared_area(pair.before, pair.after, pair.distance)
    assert shared == pytest.approx(retained, rel=1e-6, abs=1e-6)
