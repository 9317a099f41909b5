from math import inf

import numpy as np
import pytest

from fedstage.results.claims.significance import PValues, corrected, holm, p_outside, p_within
from fedstage.results.intervals import confidence_interval

#: t = 2 / (1 / sqrt(3)) = 3.4641 with 2 degrees of freedom: P(|T| > t) = 1 - t / sqrt(2 + t^2).
VALUES = [1.0, 2.0, 3.0]
P = 1 - 12**0.5 / 14**0.5


def test_a_mean_above_a_bound_has_the_p_value_of_students_t():
    assert p_within(VALUES, 0.0, inf, closed=False) == pytest.approx(P)
    assert p_outside(VALUES, -inf, 0.0) == pytest.approx(P)
    assert p_within(VALUES, -inf, 4.0, closed=True) == pytest.approx(P)
    assert p_within(VALUES, -inf, 0.0, closed=False) == p_outside(VALUES, 0.0, inf) == 1.0


def test_between_two_bounds_the_harder_one_counts_and_beyond_them_the_easier():
    assert p_within(VALUES, 0.0, 3.0, closed=True) == p_within(VALUES, -inf, 3.0, closed=True)
    assert p_outside(VALUES, 0.5, 1.0) == p_outside(VALUES, -inf, 1.0)


@pytest.mark.parametrize("bound", [-2.4, -0.49, -0.48, 0.0, 1.0])
def test_five_percent_are_where_the_interval_ends(bound):
    """The interval of 95 % ends at 2 -+ 4.3027 / sqrt(3) = -0.4841 and 4.4841."""
    above = confidence_interval(VALUES).low > bound
    assert (p_within(VALUES, bound, inf, closed=False) <= 0.05) is above


def test_values_without_spread_leave_no_doubt_and_one_value_every_doubt():
    same = [2.0, 2.0]
    assert p_within(same, 2.0, inf, closed=True) == p_outside(same, -inf, 1.9) == 0.0
    assert p_within(same, 2.0, inf, closed=False) == p_outside(same, 2.0, inf) == 1.0
    assert p_within([2.0], 0.0, inf, closed=False) == p_outside([2.0], 3.0, inf) == 1.0


def test_holms_correction():
    """0.01 counts four times, 0.02 three times, and no later one is below an earlier one."""
    assert holm([0.02, 0.01, 0.9, 0.022]) == pytest.approx([0.06, 0.04, 0.9, 0.06])
    assert holm([0.5, 0.6]) == [1.0, 1.0]
    assert holm([]) == []


@pytest.mark.parametrize("by", ["holm", "fdr_bh"])
def test_corrections_are_those_of_statsmodels(by):
    reference = pytest.importorskip("statsmodels.stats.multitest")
    random = np.random.default_rng(0)
    for size in (1, 2, 7, 40):
        p_values = [float(p) for p in random.uniform(size=size).round(1) ** 3]  # some are equal
        expected = reference.multipletests(p_values, method=by)[1]
        assert corrected(p_values, by) == pytest.approx(expected)
    assert corrected([], by) == []


def test_p_values_times_a_factor_end_at_one():
    assert PValues(0.01, 0.5, 0.25).times(4) == pytest.approx((0.04, 1.0, 1.0))
