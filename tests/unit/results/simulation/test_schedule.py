import subprocess
import sys

import numpy as np
import pytest
from measured import SERVER as TEACHES
from measured import SETTINGS

from fedstage.data.participation import draw
from fedstage.errors import FedstageError
from fedstage.plan.jobs import jobs_of
from fedstage.results.simulation.events import AGGREGATOR, SERVER
from fedstage.results.simulation.schedule import schedule, seconds_of
from fedstage.settings.recipes import Recipe
from fedstage.settings.simulation import Simulation

ROUNDS = 5
BASE = SETTINGS | {
    "data": {"digits": {"held_out": 100}},
    "clients": 1000,  # so that nobody is drawn again while still busy
    "partition": {"dirichlet": {"alpha": 0.1, "min_samples": 1}},
    "participants": 8,
    "server": TEACHES,
}
METHODS = {
    "fedavg": {},
    "feddf": {"ensemble": "clients", "global": "basic"},
    "basic": {"global_models": 4, "ensemble": "aggregated", "global": "basic"},
    "fedsdd": {"global_models": 4, "ensemble": "aggregated", "global": "designated"},
}


def recipe(method, **changes):
    choices = {
        key: {"name": value} if isinstance(value, str) else value
        for key, value in METHODS[method].items()
    }
    return Recipe.model_validate(BASE | choices | changes)


def made(method, settings, rounds=ROUNDS, **changes):
    return schedule(recipe(method, **changes), rounds, Simulation.model_validate(settings))


def round_seconds(method, settings, rounds=ROUNDS, **changes):
    return made(method, settings, rounds, **changes).measures.round_seconds


# --- seconds a round, by hand ---------------------------------------------------------------------


STRAGGLERS = {"cyclic": {"delays": [0, 1]}}


def test_who_is_never_synchronised_trains_at_once_and_stragglers_every_other_round():
    settings = {"local_training": 10.0, "aggregation": 1.0}
    assert round_seconds("fedavg", settings) == 11
    # All begin at 0, and the average of a round waits for that of the round before.
    assert round_seconds("fedavg", settings, staleness="never") == pytest.approx((10 + 5) / 5)
    # Rounds 1 and 2 begin at 0, 3 and 4 when 2 is there (12 s), 5 when 4 is (24 s), which ends it.
    assert round_seconds("fedavg", settings, staleness=STRAGGLERS) == pytest.approx(35 / 5)


def test_who_stays_away_takes_no_time_and_no_client():
    settings = {"local_training": 10.0, "aggregation": 1.0, "logits": 2.0, "distillation": 30.0}
    changes = {"staleness": STRAGGLERS, "withdraw_stale": True}
    one = made("feddf", settings, rounds=4, **changes)
    for job, span in one.spans.items():
        trains = job.stage == "local_training"
        assert (span.end - span.start == 10) == (trains and job.round in (1, 3))
        if trains:
            assert (span.place == AGGREGATOR) == (job.round in (2, 4))
    assert one.measures.round_seconds == pytest.approx(2 * (10 + 8 * 2 + 30 + 1) / 4)


def test_clients_that_come_in_turn_are_known_before():
    one = made("fedavg", {"local_training": 10.0}, rounds=2, participation="in_turn")
    places = [span.place for job, span in one.spans.items() if job.stage == "local_training"]
    assert sorted(places) == list(range(16))


def test_a_round_of_fedavg_is_its_slowest_participant_and_the_aggregation():
    settings = {"local_training": {"mean": 10.0, "variation": 0.7}, "aggregation": 2.0}
    one = made("fedavg", settings, rounds=3)
    total, begun = 0.0, 0.0
    for round_ in (1, 2, 3):
        trained = [
            span.end - span.start
            for job, span in one.spans.items()
            if (job.stage, job.round) == ("local_training", round_)
        ]
        assert len(set(trained)) == 8
        total += max(trained) + 2.0
        starts = {span.start for job, span in one.spans.items() if job.round == round_}
        assert min(starts) == pytest.approx(begun)
        begun = total
    assert one.measures.round_seconds == pytest.approx(total / 3)
    assert one.measures.bound == pytest.approx(total / 3)


def test_feddf_adds_what_the_server_does_to_every_round():
    settings = {"local_training": 10.0, "aggregation": 1.0, "logits": 2.0, "distillation": 30.0}
    # The server asks the eight models while the round is aggregated.
    assert round_seconds("feddf", settings) == 10 + 8 * 2 + 30


def test_basic_distillation_of_four_keeps_a_server_busy_and_four_workers_share_it():
    settings = {"local_training": 10.0, "logits": 2.0, "distillation": 30.0}
    # All but the last student train on while the server distils; the last one's clients and model
    # are what a later round waits for.
    first, later = 10 + 4 * 2 + 4 * 30, 10 + 2 + 4 * 30
    assert round_seconds("basic", settings) == (first + (ROUNDS - 1) * later) / ROUNDS
    assert round_seconds("basic", settings | {"servers": 4}) == 10 + 2 + 30


def test_fedsdd_trains_three_groups_while_the_server_distils():
    one = made("fedsdd", {"local_training": 10.0, "distillation": 6.0})
    # The main group trains and is distilled in turns; the others are ahead of it.
    assert one.measures.round_seconds == one.measures.bound == 16
    starts = {
        (job.round, job.group): span.start
        for job, span in one.spans.items()
        if job.stage == "local_training"
    }
    assert [starts[2, group] for group in range(4)] == [16, 10, 10, 10]
    assert [starts[5, group] for group in range(4)] == [64, 40, 40, 40]


def test_fedsdd_takes_as_long_as_its_server_where_that_is_slower_than_its_clients():
    settings = {"local_training": 10.0, "logits": 5.0, "distillation": 6.0}
    # After the first training the server is never without work: 4 models asked, one distilled.
    one = made("fedsdd", settings)
    assert one.measures.round_seconds == (10 + ROUNDS * (4 * 5 + 6)) / ROUNDS
    assert one.measures.bound == 10 + 5 + 6
    assert one.measures.server_idle == pytest.approx(10 / (10 + ROUNDS * 26))


@pytest.mark.parametrize("participants", [8, 12, 20])
def test_feddf_grows_with_its_participants_and_fedsdd_does_not(participants):
    settings = {"local_training": 10.0, "logits": 2.0, "distillation": 30.0}
    feddf, fedsdd = (
        round_seconds(method, settings, participants=participants) for method in ("feddf", "fedsdd")
    )
    assert feddf == 10 + 2 * participants + 30
    # In the first round four models are asked one after the other; later, three of them while the
    # main group trains.
    first, later = 10 + 4 * 2 + 30, 10 + 2 + 30
    assert fedsdd == (first + (ROUNDS - 1) * later) / ROUNDS


@pytest.mark.parametrize(("ahead", "round_3"), [(0, 32), (1, 20), (2, 20), (None, 20)])
def test_rounds_ahead_hold_groups_back_until_earlier_rounds_are_complete(ahead, round_3):
    settings = {"local_training": 10.0, "distillation": 6.0, "rounds_ahead": ahead}
    one = made("fedsdd", settings)
    # Round 1 is complete after 16 seconds, round 2 after 32.
    starts = {
        span.start
        for job, span in one.spans.items()
        if (job.stage, job.round, job.group) == ("local_training", 3, 1)
    }
    assert starts == {round_3}
    assert one.measures.round_seconds == 16


def test_without_a_lead_fedsdd_is_as_slow_as_feddf_asking_as_many_models():
    settings = {"local_training": 10.0, "logits": 2.0, "distillation": 30.0, "rounds_ahead": 0}
    assert round_seconds("fedsdd", settings) == 10 + 4 * 2 + 30
    assert round_seconds("feddf", settings, participants=4) == 10 + 4 * 2 + 30


# --- where jobs run -------------------------------------------------------------------------------


def test_participants_train_at_the_clients_that_are_drawn():
    one = made("fedsdd", {"distillation": 3.0})
    for job, span in one.spans.items():
        if job.stage == "local_training":
            assert span.place == draw(1000, 8, 0, job.round)[job.participant]
        else:
            assert span.place == (AGGREGATOR if job.stage == "aggregation" else SERVER)


def test_aggregations_wait_for_no_distillation():
    one = made("fedsdd", {"local_training": 10.0, "aggregation": 1.0, "distillation": 100.0})
    ends = {
        (job.round, job.group): span.end
        for job, span in one.spans.items()
        if job.stage == "aggregation"
    }
    assert [ends[round_, 3] for round_ in (1, 2, 3)] == [11, 22, 33]


def test_clients_that_are_away_half_of_the_time_make_rounds_longer():
    settings = {"local_training": 10.0, "distillation": 6.0}
    away = settings | {"availability": {"share": 0.5, "interval": 20.0}}
    for method in METHODS:
        assert round_seconds(method, away) > round_seconds(method, settings)
        assert made(method, away).measures.bound == made(method, settings).measures.bound


# --- a server's model and heads -------------------------------------------------------------------

FEDET = {
    "model": {"cnn_small": {"head": {}}},
    "global_models": 3,
    "server_model": True,
    "head_sharing": True,
    "ensemble": {"clients": {"weights": "confidence"}},
    "global": "designated",
}


def test_fedets_clients_wait_for_the_servers_head():
    settings = {"local_training": 10.0, "logits": 2.0, "distillation": 30.0}
    # Two groups of four clients are asked, one group after the other, and then the server learns.
    assert round_seconds("fedavg", settings, **FEDET) == 10 + 8 * 2 + 30


def test_a_transfer_of_heads_takes_the_servers_time_three_times_a_round():
    settings = {"local_training": 10.0, "logits": 2.0, "distillation": 30.0, "head_sharing": 1.0}
    # Once up, and down to both groups; the first of these trains on while the second gets its head.
    first = 10 + 8 * 2 + 1 + 30 + 2
    total = first + (ROUNDS - 1) * (first - 1)
    assert round_seconds("fedavg", settings, **FEDET) == total / ROUNDS


def test_groups_that_are_drawn_are_not_simulated():
    with pytest.raises(FedstageError) as caught:
        made("fedavg", {}, **FEDET, client_groups="drawn")
    assert str(caught.value) == (
        "simulation: client_groups = 'drawn': must be 'by_index', because most participants of "
        "groups that are drawn are absent"
    )


# --- seconds of jobs ------------------------------------------------------------------------------


def durations(method, settings, clients=None, **changes):
    chosen = recipe(method, **changes)
    edges = jobs_of(chosen, 3)
    where = {job: job.participant for job in edges if job.stage == "local_training"}
    found = seconds_of(chosen, edges, clients or where, Simulation.model_validate(settings))
    return {(job.stage, job.file): seconds for job, seconds in found.items()}


VARYING = {
    name: {"mean": 5.0, "variation": 0.5} for name in ("local_training", "logits", "distillation")
}


def test_constants_are_constants_and_logits_are_by_the_model():
    settings = {"local_training": 3, "aggregation": 0.5, "logits": 2, "distillation": 7}
    found = {stage: set() for stage in settings}
    for (stage, *_), seconds in durations("feddf", settings).items():
        found[stage].add(seconds)
    assert found == {
        "local_training": {3.0},
        "aggregation": {0.5},
        "logits": {16.0},
        "distillation": {7.0},
    }


def test_methods_of_a_seed_share_the_seconds_of_their_clients():
    one, other = durations("fedavg", VARYING), durations("feddf", VARYING)

    def trained(found):
        return sorted(s for (stage, *_), s in found.items() if stage == "local_training")

    assert trained(one) == trained(other)
    assert len(set(trained(one))) == 24
    assert trained(one) != trained(durations("fedavg", VARYING, seed=1))


def test_seconds_that_vary_have_their_mean_and_deviation():
    chosen = recipe("fedavg")
    edges = jobs_of(chosen, 400)
    where = {job: job.participant for job in edges if job.stage == "local_training"}
    settings = Simulation.model_validate({"local_training": {"mean": 5.0, "variation": 0.5}})
    found = seconds_of(chosen, edges, where, settings)
    drawn = [found[job] for job in where]
    assert np.mean(drawn) == pytest.approx(5.0, rel=0.03)
    assert np.std(drawn) == pytest.approx(2.5, rel=0.1)


def test_a_slow_client_is_slow_in_every_round():
    chosen = recipe("fedavg", participants=1)
    edges = jobs_of(chosen, 3)
    settings = Simulation(local_training=10.0, clients_differ=0.5)
    by_client = {}
    for client in (3, 4):
        where = {job: client for job in edges if job.stage == "local_training"}
        found = seconds_of(chosen, edges, where, settings)
        (by_client[client],) = {found[job] for job in where}
    assert by_client[3] != by_client[4]
    assert 10.0 not in by_client.values()


def test_a_simulation_needs_no_torch():
    code = "import sys, fedstage.results.simulation.schedule; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
