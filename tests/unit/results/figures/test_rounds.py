"""Ticks of an axis of rounds."""

import pytest

from fedstage.results.figures.rounds import round_ticks


def test_ticks_are_round_numbers_between_the_ends():
    for ticks in (
        [1], [1, 2], [1, 2, 3], [1, 2, 3, 4, 5, 6], [1, 2, 4, 6, 7], [1, 2, 4, 6, 8, 10],
        [1, 5, 10, 15, 20, 25], [5, 10, 20, 30, 40, 50], [1, 20, 40, 60, 80, 100],
        [10, 200, 400, 600, 800, 1000], [1, 20, 40, 60, 80, 97],
    ):  # fmt: skip
        assert round_ticks(ticks[0], ticks[-1]) == ticks


@pytest.mark.parametrize("most", [2, 3, 5, 12])
def test_ticks_begin_and_end_with_the_rounds_and_are_few(most):
    for first in (1, 2, 7, 50):
        for last in range(first + 1, first + 400, 7):
            ticks = round_ticks(first, last, most)
            assert (ticks[0], ticks[-1]) == (first, last)
            assert len(ticks) <= most
            assert ticks == sorted(set(ticks))
