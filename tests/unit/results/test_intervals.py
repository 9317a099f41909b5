from math import inf, isnan, nan

import numpy as np
import pytest

from fedstage.results.intervals import (
    confidence_interval,
    holm,
    interval_of_differences,
    p_outside,
    p_within,
    welch_interval,
)


def test_the_interval_is_around_the_mean():
    interval = confidence_interval([1.0, 2.0, 3.0])
    assert (interval.mean, interval.n) == (2.0, 3)
    assert (
        interval.high - 2.0
        == pytest.approx(2.0 - interval.low)
        == pytest.approx(4.3027 / 3**0.5, rel=1e-4)
    )


def test_few_differences_that_are_all_the_same_have_no_interval():
    for few in ([-2.67, -2.67], [60.2 - 62.87, 50.2 - 52.87, 0.2 - 2.87], [0.0] * 4):
        found = interval_of_differences(few)
        assert found.mean == pytest.approx(few[0])
        assert isnan(found.low)
        assert isnan(found.high)
    assert interval_of_differences([1.0] * 5).low == 1.0
    assert interval_of_differences([1.0, 2.0]) == confidence_interval([1.0, 2.0])


def test_welchs_interval():
    """Variances 4 and 9 over 5 and 8: 10.87 degrees, t between 2.2281 (10) and 2.2010 (11)."""
    low, high = welch_interval((20.0, 2.0, 5), (25.0, 3.0, 8))
    error = (4 / 5 + 9 / 8) ** 0.5
    assert (low, high) == pytest.approx((-5 - 2.2042 * error, -5 + 2.2042 * error), rel=1e-4)
    # With equal deviations and numbers it is Student's of the pooled deviation.
    low, high = welch_interval((1.0, 2.0, 3), (0.0, 2.0, 3))
    assert high - 1.0 == pytest.approx(2.776445 * 2.0 * (2 / 3) ** 0.5)


def test_welchs_interval_needs_two_deviations():
    for one, other in (((1.0, 2.0, 1), (1.0, 2.0, 3)), ((1.0, 2.0, 3), (1.0, nan, 3))):
        assert all(map(isnan, welch_interval(one, other)))
    assert welch_interval((1.5, 0.0, 3), (1.0, 0.0, 3)) == (0.5, 0.5)


# --- p-values -------------------------------------------------------------------------------------

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


def test_holms_correction_is_that_of_statsmodels():
    reference = pytest.importorskip("statsmodels.stats.multitest")
    random = np.random.default_rng(0)
    for size in (1, 2, 7, 40):
        p_values = [float(p) for p in random.uniform(size=size).round(1) ** 3]  # some are equal
        assert holm(p_values) == pytest.approx(reference.multipletests(p_values, method="holm")[1])
