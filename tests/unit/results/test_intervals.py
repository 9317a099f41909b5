from math import inf, isnan, nan, pi

import pytest

from fedstage.results.intervals import (
    central_probability,
    confidence_interval,
    student_t,
    welch_interval,
)


def test_tables_of_students_distribution():
    """Quantiles as they are printed in textbooks."""
    printed = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 9: 2.262, 30: 2.042, 120: 1.980}
    assert {df: round(student_t(0.95, df), 3) for df in printed} == printed
    assert round(student_t(0.99, 4), 3) == 4.604


def test_one_and_two_degrees_have_closed_forms():
    assert central_probability(1.0, 1) == pytest.approx(0.5)
    assert central_probability(3**0.5, 1) == pytest.approx(2 / 3)  # 2/pi atan(t)
    assert central_probability(2.0, 2) == pytest.approx(2 / 6**0.5)  # t / sqrt(2 + t^2)
    assert central_probability(0.0, 5) == 0.0
    assert central_probability(inf, 7) == pytest.approx(1.0)
    assert student_t(2 / pi, 1) == pytest.approx(1.5574077, rel=1e-6)


def test_the_interval_is_around_the_mean():
    interval = confidence_interval([1.0, 2.0, 3.0])
    assert (interval.mean, interval.n) == (2.0, 3)
    assert (
        interval.high - 2.0
        == pytest.approx(2.0 - interval.low)
        == pytest.approx(4.3027 / 3**0.5, rel=1e-4)
    )


def test_values_that_are_all_the_same_have_no_width():
    interval = confidence_interval([0.5, 0.5])
    assert (interval.low, interval.mean, interval.high) == (0.5, 0.5, 0.5)


def test_welchs_interval():
    """Means 20 and 25, variances 4 and 9 over 5 and 8: 1.925 apart, 10.6 degrees of freedom."""
    low, high = welch_interval((20.0, 2.0, 5), (25.0, 3.0, 8))
    error = (4 / 5 + 9 / 8) ** 0.5
    assert (low, high) == pytest.approx((-5 - 2.2281 * error, -5 + 2.2281 * error), rel=1e-4)
    # With equal deviations and numbers it is Student's of the pooled deviation.
    low, high = welch_interval((1.0, 2.0, 3), (0.0, 2.0, 3))
    assert high - 1.0 == pytest.approx(student_t(0.95, 4) * 2.0 * (2 / 3) ** 0.5)


def test_welchs_interval_needs_two_deviations():
    for one, other in (((1.0, 2.0, 1), (1.0, 2.0, 3)), ((1.0, 2.0, 3), (1.0, nan, 3))):
        assert all(map(isnan, welch_interval(one, other)))
    assert welch_interval((1.5, 0.0, 3), (1.0, 0.0, 3)) == (0.5, 0.5)


def test_one_value_has_no_interval_and_none_no_mean():
    one, none = confidence_interval([3.0]), confidence_interval([])
    assert (one.mean, one.n, none.n) == (3.0, 1, 0)
    assert all(map(isnan, (one.low, one.high, none.mean, none.low, none.high)))
