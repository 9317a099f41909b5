"""Bounds against published tables, and against plain Monte Carlo."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import norm

from fedstage.results.claims.looks import look_at, nominal_level, repeated_p, spending_bounds

LOOKS = (5, 10, 20)


def equal(looks):
    return tuple((k + 1) / looks for k in range(looks))


def test_bounds_by_spending():
    """As Lan and DeMets's program prints them, and R's gsDesign and ldbounds."""
    printed = {
        1: [1.96],
        2: [2.9626, 1.9686],
        3: [3.7103, 2.5114, 1.9930],
        5: [4.8769, 3.3570, 2.6803, 2.2898, 2.0310],
    }
    for looks, bounds in printed.items():
        assert spending_bounds(0.05, equal(looks)) == pytest.approx(bounds, abs=1e-4)


def test_bounds_that_are_simulated_cross_as_often_as_they_should():
    rng = np.random.default_rng(0)
    steps = rng.normal(size=(200_000, 3)) * np.sqrt([0.25, 0.25, 0.5])
    statistics = steps.cumsum(1) / np.sqrt([0.25, 0.5, 1.0])
    bounds = spending_bounds(0.2, (0.25, 0.5, 1.0))
    share = (np.abs(statistics) > bounds).any(1).mean()
    assert share == pytest.approx(0.2, abs=0.004)
    first = (np.abs(statistics[:, :2]) > bounds[:2]).any(1).mean()
    assert first == pytest.approx(4 * norm.sf(norm.isf(0.05) / 0.5**0.5), abs=0.004)


def test_levels_grow_from_look_to_look_and_spend_no_more_than_allowed():
    levels = [nominal_level(0.05, k, LOOKS) for k in range(3)]
    assert levels == pytest.approx([1.47e-5, 0.00305, 0.0490], rel=5e-3)
    assert all(one < other for one, other in pairwise(levels))


def test_a_repeated_p_value_is_the_alpha_whose_level_it_is():
    for look in range(3):
        for alpha in (1e-6, 0.01, 0.05, 0.6):
            p_value = nominal_level(alpha, look, LOOKS)
            assert repeated_p(p_value, look, LOOKS) == pytest.approx(alpha, rel=1e-6)
        assert repeated_p(0.0, look, LOOKS) == 0.0
        assert repeated_p(1.0, look, LOOKS) == 1.0
    assert repeated_p(0.03, 0, (7,)) == pytest.approx(0.03)  # one look is none


def test_the_number_of_seeds_is_a_look():
    assert [look_at(n, LOOKS) for n in (0, 4, 5, 9, 10, 19, 20, 99)] == [
        *(None, None, 0, 0, 1, 1, 2, 2)
    ]
    assert look_at(3, ()) is None
