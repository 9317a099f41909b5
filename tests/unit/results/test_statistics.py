"""Intervals, tests and corrections, against scipy and statsmodels."""

import math
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.weightstats import CompareMeans, DescrStatsW

from fedstage.results.statistics import (
    confidence_interval,
    holm,
    interval_of_differences,
    p_of_differences,
    p_outside,
    p_within,
    paired,
    welch_interval,
)

SAMPLES = st.lists(st.floats(-50, 50), min_size=3, max_size=12).filter(
    lambda values: np.std(values) > 1e-3
)


@given(SAMPLES)
def test_the_interval_is_that_of_the_t_test(values):
    found = confidence_interval(values)
    expected = stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-9)
    assert found.mean == pytest.approx(np.mean(values))


@given(SAMPLES)
def test_the_p_value_of_differences_is_that_of_the_paired_test(values):
    expected = stats.ttest_rel(values, [0.0] * len(values)).pvalue
    assert p_of_differences(values) == pytest.approx(expected, rel=1e-6, abs=1e-12)


@given(SAMPLES, SAMPLES)
def test_welch(left, right):
    parts = [(float(np.mean(of)), float(np.std(of, ddof=1)), len(of)) for of in (left, right)]
    means = CompareMeans(DescrStatsW(left), DescrStatsW(right))
    expected = means.tconfint_diff(usevar="unequal")
    assert welch_interval(*parts) == pytest.approx(expected, rel=1e-6, abs=1e-9)


@given(st.lists(st.floats(0, 1), max_size=10))
def test_holm(p_values):
    with patch("gc.collect"):  # which statsmodels calls each time, and takes longer than the rest
        expected = multipletests(p_values, method="holm")[1] if p_values else []
    assert holm(p_values) == pytest.approx(list(expected))


@given(SAMPLES, st.floats(-20, 0), st.floats(0.1, 20))
def test_a_p_value_is_significant_where_the_interval_lies_as_a_whole(values, low, high):
    found = confidence_interval(values)
    inside = low < found.low and found.high < high
    outside = found.high < low or found.low > high
    near = min(abs(end - bound) for end in found[1:3] for bound in (low, high)) < 1e-6
    assert near or (p_within(values, low, high, closed=True) <= 0.05) == inside
    assert near or (p_outside(values, low, high) <= 0.05) == outside


def test_few_values_decide_nothing():
    assert math.isnan(confidence_interval([1.0]).low)
    assert math.isnan(interval_of_differences([2.0] * 4).low)
    assert p_of_differences([2.0] * 4) == 1.0
    assert p_of_differences([2.0] * 5) == 0.0
    assert p_within([1.0], 0.0, 2.0, closed=True) == 1.0
    assert math.isnan(welch_interval((1.0, 0.1, 1), (1.0, 0.1, 3))[0])


def test_pairs_are_the_seeds_that_both_have():
    assert paired({0: 3.0, 1: 5.0, 2: 1.0}, {1: 1.0, 0: 1.0, 7: 9.0}) == [2.0, 4.0]
