from itertools import islice, pairwise
from math import inf

import pytest

from fedstage.results.simulation.availability import (
    Calendar,
    available_seconds,
    away_before,
    windows,
)
from fedstage.settings.simulation import Availability

HALF = Availability(share=0.5, interval=10.0)


def calendar(*intervals):
    rest = iter(intervals)
    return Calendar(rest, next(rest))


def test_without_availability_a_client_is_always_there():
    assert list(windows(None, 0, 3)) == [(0.0, inf)]


def test_intervals_do_not_touch_and_are_the_same_each_time():
    first = list(islice(windows(HALF, 0, 3), 50))
    assert first == list(islice(windows(HALF, 0, 3), 50))
    assert all(begin < end for begin, end in first)
    assert all(end < begin for (_, end), (begin, _) in pairwise(first))


def test_clients_and_seeds_have_intervals_of_their_own():
    found = {next(windows(HALF, seed, client))[1] for seed in (0, 1) for client in range(4)}
    assert len(found) == 8


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_share_and_interval_are_those_of_the_settings(share):
    settings = Availability(share=share, interval=10.0)
    until = 200_000.0
    there = available_seconds(windows(settings, 0, 0), until)
    assert there / until == pytest.approx(share, abs=0.02)
    lengths = [end - begin for begin, end in islice(windows(settings, 0, 0), 5000)]
    assert sum(lengths) / len(lengths) == pytest.approx(10.0, rel=0.05)


def test_at_time_0_as_many_clients_are_there_as_at_any_other_time():
    settings = Availability(share=0.3, interval=10.0)
    there = [next(windows(settings, 0, client))[0] == 0.0 for client in range(2000)]
    assert sum(there) / len(there) == pytest.approx(0.3, abs=0.03)


def test_available_seconds_are_cut_at_the_end():
    intervals = [(1.0, 3.0), (5.0, 8.0), (9.0, inf)]
    found = [available_seconds(iter(intervals), until) for until in (0.5, 2.0, 4.0, 6.0, 10.0)]
    assert found == [0.0, 1.0, 2.0, 3.0, 6.0]


def test_a_client_is_away_between_its_intervals():
    intervals = [(1.0, 3.0), (5.0, 8.0), (9.0, inf)]
    found = {until: list(away_before(iter(intervals), until)) for until in (0.5, 3.0, 6.0, 20.0)}
    assert found == {
        0.5: [(0.0, 0.5)],
        3.0: [(0.0, 1.0)],
        6.0: [(0.0, 1.0), (3.0, 5.0)],
        20.0: [(0.0, 1.0), (3.0, 5.0), (8.0, 9.0)],
    }
    assert list(away_before(windows(None, 0, 0), 5.0)) == []


def test_there_and_away_add_up():
    away = sum(end - begin for begin, end in away_before(windows(HALF, 0, 3), 500.0))
    assert away + available_seconds(windows(HALF, 0, 3), 500.0) == pytest.approx(500.0)


def test_a_calendar_opens_at_the_next_interval():
    intervals = ((1.0, 3.0), (5.0, 8.0))
    assert [calendar(*intervals).opens(time) for time in (0.0, 2.0, 3.0, 5.5)] == [1, 2, 5, 5.5]


def test_work_pauses_while_the_client_is_away():
    intervals = ((1.0, 3.0), (5.0, 8.0), (10.0, 11.0))
    found = [calendar(*intervals).finish(1.5, seconds) for seconds in (0.0, 1.5, 1.6, 4.5, 5.0)]
    assert found == pytest.approx([1.5, 3.0, 5.1, 8.0, 10.5])
