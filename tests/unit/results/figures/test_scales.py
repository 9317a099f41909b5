"""Scales of tried values."""

import math

import pandas as pd
import pytest

from fedstage.results.figures.scales import scale_of

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
