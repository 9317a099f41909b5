from math import isnan, nan

import pytest

from fedstage.results.intervals import (
    confidence_interval,
    interval_of_differences,
    welch_interval,
    with_images,
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


def test_one_value_has_no_interval_and_none_no_mean():
    one, none = confidence_interval([3.0]), confidence_interval([])
    assert (one.mean, one.n, none.n) == (3.0, 1, 0)
    assert all(map(isnan, (one.low, one.high, none.mean, none.low, none.high)))


def test_test_images_widen_the_interval_and_their_number_does_not_shrink_with_seeds():
    """s = 1 over three seeds, and a variance of 2 / 3: se = 1, (1/3 + 2/3)^2 / (1/18 + 4/8991)."""
    found = with_images([1.0, 2.0, 3.0], 2 / 3, 1000)
    degrees = 1 / ((1 / 3) ** 2 / 2 + (2 / 3) ** 2 / 999)
    assert 17.8 < degrees < 17.9
    assert (found.mean, found.n) == (2.0, 3)
    assert found.high - 2.0 == pytest.approx(2.1021, abs=1e-3)  # of 17.86 degrees of freedom
    without = with_images([1.0, 2.0, 3.0], 0.0, 1000)
    own = confidence_interval([1.0, 2.0, 3.0])
    assert (without.low, without.high) == pytest.approx((own.low, own.high))
    assert isnan(with_images([1.0], 1.0, 1000).low)
