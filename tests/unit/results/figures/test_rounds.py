"""Ticks of an axis of rounds."""

import pytest

from fedstage.results.figures.rounds import round_ticks


@pytest.mark.parametrize("most", [2, 3, 5, 12])
def test_ticks_begin_and_end_with_the_rounds_and_are_few(most):
    for first in (1, 2, 7, 50):
        for last in range(first + 1, first + 400, 7):
            ticks = round_ticks(first, last, most)
            assert (ticks[0], ticks[-1]) == (first, last)
            assert len(ticks) <= most
            assert ticks == sorted(set(ticks))
