from collections import defaultdict
from itertools import pairwise
from math import inf

import numpy as np
import pytest

from fedstage.plan.jobs import Job
from fedstage.results.simulation.availability import available_seconds, windows
from fedstage.results.simulation.events import AGGREGATOR, SERVER, Span, simulate
from fedstage.results.simulation.schedule import critical_path, measure
from fedstage.settings.simulation import Availability


def always(place):
    return iter([(0.0, inf)])


def job(name, round_=1, group=0):
    return Job(round_, group, "x", name)


A, B, C, D = (job(name) for name in "abcd")


def run(edges, seconds, places, windows=always, **workers):
    spans = simulate(edges, seconds, places, windows, workers.get("workers", {}))
    return {one: (span.start, span.end) for one, span in spans.items()}


# --- by hand --------------------------------------------------------------------------------------


def test_a_job_begins_when_all_that_it_waits_for_has_ended():
    edges = {A: (), B: (), C: (A, B), D: (C,)}
    found = run(edges, {A: 2.0, B: 3.0, C: 1.0, D: 1.0}, {A: 0, B: 1, C: SERVER, D: 0})
    assert found == {A: (0, 2), B: (0, 3), C: (3, 4), D: (4, 5)}


def test_a_client_does_one_job_at_a_time_earlier_rounds_and_lower_groups_first():
    late, main, other = job("a", round_=2), job("z", group=0), job("b", group=1)
    edges = {late: (), main: (), other: ()}
    found = run(edges, dict.fromkeys(edges, 1.0), dict.fromkeys(edges, 7))
    assert found == {main: (0, 1), other: (1, 2), late: (2, 3)}


def test_a_job_that_has_begun_is_not_interrupted():
    early, late = job("b", round_=1), job("c", round_=2)
    edges = {A: (), early: (A,), late: ()}
    places = {A: 0, early: 1, late: 1}
    assert run(edges, {A: 1.0, early: 1.0, late: 5.0}, places)[early] == (5, 6)


def test_the_server_has_workers():
    edges = {A: (), B: (), C: (), D: ()}
    seconds, places = {A: 3.0, B: 1.0, C: 1.0, D: 1.0}, dict.fromkeys(edges, SERVER)
    spans = simulate(edges, seconds, places, always, {SERVER: 2})
    assert spans == {
        A: Span(SERVER, 0, 0.0, 3.0),
        B: Span(SERVER, 1, 0.0, 1.0),
        C: Span(SERVER, 1, 1.0, 2.0),
        D: Span(SERVER, 1, 2.0, 3.0),
    }


def test_what_ends_at_one_moment_has_ended_before_anything_begins():
    """C is lower than D, and what both wait for ends in the same moment."""
    edges = {A: (), B: (), C: (B,), D: (A,)}
    found = run(edges, dict.fromkeys(edges, 1.0), {A: 0, B: 1, C: SERVER, D: SERVER})
    assert found[C] == (1, 2)
    assert found[D] == (2, 3)


def test_jobs_without_duration_take_no_time():
    edges = {A: (), B: (A,), C: (B,)}
    found = run(edges, {A: 1.0, B: 0.0, C: 0.0}, {A: 0, B: SERVER, C: 0})
    assert found == {A: (0, 1), B: (1, 1), C: (1, 1)}


def test_a_job_behind_one_without_duration_is_not_passed_over():
    first, second = job("d", round_=1), job("e", round_=2)
    edges = {A: (), B: (A,), first: (B,), C: (), second: (C,)}
    places = {A: 0, B: AGGREGATOR, C: 1, first: SERVER, second: SERVER}
    seconds = {A: 1.0, B: 0.0, C: 1.0, first: 5.0, second: 5.0}
    found = run(edges, seconds, places)
    assert (found[first], found[second]) == ((1, 6), (6, 11))


def test_a_client_begins_when_it_comes_and_pauses_when_it_goes():
    intervals = {0: [(2.0, 4.0), (7.0, inf)], 1: [(0.0, inf)]}
    edges = {A: (), B: (A,), C: ()}
    places = {A: 0, B: 1, C: 0}
    found = run(edges, {A: 3.0, B: 1.0, C: 1.0}, places, lambda place: iter(intervals[place]))
    assert found == {A: (2, 8), B: (8, 9), C: (8, 9)}


def test_a_client_that_comes_takes_the_lowest_job_that_is_ready_by_then():
    first, second = job("d", round_=1), job("e", round_=2)
    edges = {C: (), first: (C,), second: ()}
    places = {C: 1, first: 0, second: 0}
    intervals = {0: [(5.0, inf)], 1: [(0.0, inf)]}
    seconds = {C: 1.0, first: 1.0, second: 1.0}
    found = run(edges, seconds, places, lambda place: iter(intervals[place]))
    assert found[first] == (5, 6)
    assert found[second] == (6, 7)


# --- on random inputs -----------------------------------------------------------------------------

CLIENTS = 4


def random_case(seed):
    """Jobs with edges from earlier ones, on four clients, a server of two and an aggregator."""
    draw = np.random.default_rng(seed)
    jobs = sorted(
        job(f"{n:02d}", round_=int(draw.integers(1, 5)), group=int(draw.integers(2)))
        for n in range(40)
    )
    edges, seconds, places = {}, {}, {}
    for n, job_ in enumerate(jobs):
        count = int(draw.integers(0, min(n, 3) + 1))
        edges[job_] = tuple(jobs[int(i)] for i in draw.choice(n, count, replace=False)) if n else ()
        seconds[job_] = float(draw.integers(0, 5)) if n % 3 else float(draw.exponential(2.0))
        places[job_] = int(draw.choice([*range(CLIENTS), SERVER, AGGREGATOR]))
    return edges, seconds, places


WORKERS = {SERVER: 2, AGGREGATOR: 3}
SOMETIMES = Availability(share=0.4, interval=3.0)


def coming_and_going(place):
    return windows(SOMETIMES, 0, place) if place >= 0 else always(place)


def schedules(*kinds):
    """Yield random cases with their schedules, by when clients are there."""
    for case in map(random_case, range(25)):
        for there in kinds or (always, coming_and_going):
            yield *case, there, simulate(*case, there, WORKERS)


def test_every_job_runs_once_after_what_it_waits_for_and_works_for_its_seconds():
    for edges, seconds, places, there, spans in schedules():
        assert spans.keys() == edges.keys()
        for job_, span in spans.items():
            assert span.place == places[job_]
            assert all(spans[before].end <= span.start for before in edges[job_])
            before, after = (
                available_seconds(there(span.place), moment) for moment in (span.start, span.end)
            )
            assert after - before == pytest.approx(seconds[job_])


def test_a_worker_does_one_job_at_a_time():
    for *_, spans in schedules():
        by_worker = defaultdict(list)
        for span in spans.values():
            assert 0 <= span.worker < WORKERS.get(span.place, 1)
            by_worker[span.place, span.worker].append((span.start, span.end))
        for used in by_worker.values():
            assert all(end <= start for (_, end), (start, _) in pairwise(sorted(used)))


def test_nothing_waits_while_a_worker_is_free_and_nothing_lower_is_passed_over():
    for edges, _, places, _, spans in schedules(always):
        for job_, span in spans.items():
            ready = max((spans[before].end for before in edges[job_]), default=0.0)
            others = [other for other in spans if places[other] == places[job_] and other != job_]
            ends = {spans[other].end for other in others if ready < spans[other].end < span.start}
            for moment in {ready, *ends} if span.start > ready else ():
                busy = [o for o in others if spans[o].start <= moment < spans[o].end]
                assert len(busy) == WORKERS.get(span.place, 1)
            # While it was ready and waited, what began at its place was lower.
            began = [other for other in others if ready <= spans[other].start < span.start]
            assert all(other < job_ or spans[other].start == ready for other in began)


def test_it_takes_at_least_the_critical_path_and_the_work_of_each_place():
    for edges, seconds, places, _, spans in schedules(always):
        end = max(span.end for span in spans.values())
        work = defaultdict(float)
        for job_, place in places.items():
            work[place] += seconds[job_] / WORKERS.get(place, 1)
        longest = critical_path(edges, seconds)
        assert max(longest, *work.values()) - 1e-9 <= end <= sum(seconds.values()) + 1e-9
        # With a worker for every job nothing but the critical path takes time.
        alone = dict.fromkeys(places, SERVER)
        spans = simulate(edges, seconds, alone, always, {SERVER: len(edges)})
        assert max(span.end for span in spans.values()) == pytest.approx(longest)


def test_busy_and_idle_add_up_to_the_time_there_is():
    for edges, seconds, places, there, spans in schedules():
        found = measure(edges, seconds, spans, there, rounds=5, servers=2, clients=CLIENTS)
        end = max(span.end for span in spans.values())
        assert found.round_seconds == end / 5
        assert found.bound == critical_path(edges, seconds) / 5
        on_server = sum(seconds[job_] for job_, place in places.items() if place == SERVER)
        on_clients = sum(seconds[job_] for job_, place in places.items() if place >= 0)
        present = sum(available_seconds(there(client), end) for client in range(CLIENTS))
        assert (1 - found.server_idle) * 2 * end == pytest.approx(on_server)
        assert (1 - found.clients_idle) * present == pytest.approx(on_clients)


def test_the_order_in_which_jobs_are_given_does_not_matter():
    for edges, seconds, places, there, spans in schedules(coming_and_going):
        other = dict(reversed(edges.items()))
        assert spans == simulate(other, seconds, places, there, WORKERS)


def test_the_longest_chain():
    edges = {A: (), B: (A,), C: (A,), D: (B, C)}
    assert critical_path(edges, {A: 1.0, B: 5.0, C: 2.0, D: 1.0}) == 7.0
