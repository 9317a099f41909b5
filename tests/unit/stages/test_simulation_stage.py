"""Schedules: the order of jobs, compared with orders that were written down by hand."""

import csv
from pathlib import Path

import pytest
from PIL import Image
from tests.shared.recipes import FEDSDD, recipe

from fedstage.errors import FedstageError
from fedstage.experiments.catalogue import load_catalogue
from fedstage.experiments.descriptions import describe_runs
from fedstage.plan.stages import Job
from fedstage.settings.experiments import Simulation
from fedstage.stages.simulation import list_schedule, schedule, simulation
from fedstage.storage.files import save_json

WORKFLOW = Path(__file__).parents[3] / "workflow"

#: What runs from each second on, as in FedSDD's Figure 2: `train t.n` is client n's training in
#: round t, `teach t` the server's distillation. Only one client is available at a time.
WAITING = [  # all clients wait for the server
    (0, "train 1.0"), (1, "train 1.1"), (2, "train 1.2"), (3, "train 1.3"), (4, "teach 1"),
    (7, "train 2.0"), (8, "train 2.1"), (9, "train 2.2"), (10, "train 2.3"), (11, "teach 2"),
    (14, "train 3.0"), (15, "train 3.1"), (16, "train 3.2"), (17, "train 3.3"), (18, "teach 3"),
]  # fmt: skip
DESIGNATED = [  # the others train while the server distils: client 0, of the main model, comes last
    (0, "train 1.0"), (1, "train 1.1"), (2, "train 1.2"), (3, "train 1.3"), (4, "teach 1"),
    (4, "train 2.1"), (5, "train 2.2"), (6, "train 2.3"), (7, "train 2.0"), (8, "teach 2"),
    (8, "train 3.1"), (9, "train 3.2"), (10, "train 3.3"), (11, "train 3.0"), (12, "teach 3"),
]  # fmt: skip


def made(tmp_path, name):
    catalogue = load_catalogue({"targets": [f"{name}/paper"]}, WORKFLOW, "")
    save_json(tmp_path / "runs.json", describe_runs(catalogue, name, "paper"))
    figure = tmp_path / "schedule.png"
    simulation(runs=tmp_path / "runs.json", csv=tmp_path / "jobs.csv", figure=figure)
    with Image.open(figure) as image:
        assert image.size[0] > 1000
    return list(csv.DictReader((tmp_path / "jobs.csv").open()))


def order_of(rows, method):
    names = {"local_training": "train {round}.{client}", "distillation": "teach {round}"}
    return sorted(
        (float(row["start"]), names[row["stage"]].format(**row))
        for row in rows
        if row["method"] == method and row["stage"] in names
    )


def by_start(order):
    return sorted((float(start), name) for start, name in order)


def test_the_order_of_jobs_is_that_of_fedsdds_figure_2(tmp_path):
    rows = made(tmp_path, "fedsdd_figure2")
    assert order_of(rows, "feddf") == by_start(WAITING)
    assert order_of(rows, "fedsdd") == by_start(DESIGNATED)


def test_the_order_of_jobs_is_that_of_fedeeds_figures_3_and_4(tmp_path):
    rows = made(tmp_path, "fedeed_figures3_4")
    assert order_of(rows, "feddf") == by_start(WAITING)
    assert order_of(rows, "fedeed") == by_start(DESIGNATED)
    # Of a server that distils all models, a client waits for its own model.
    first = [row for row in order_of(rows, "basic_distillation") if row[0] < 17]
    assert first == by_start(
        [
            (0, "train 1.0"), (1, "train 1.1"), (2, "train 1.2"), (3, "train 1.3"),
            (4, "teach 1"), (7, "teach 1"), (10, "teach 1"), (13, "teach 1"),
            (7, "train 2.0"), (10, "train 2.1"), (13, "train 2.2"), (16, "train 2.3"),
        ]
    )  # fmt: skip


def test_a_machine_takes_ready_jobs_of_earlier_rounds_first():
    early, late, after, at_once = (
        Job(1, 0, "a", ""), Job(2, 0, "a", ""), Job(1, 1, "b", ""), Job(2, 1, "c", "")
    )  # fmt: skip
    edges = {late: (), early: (), after: (late,), at_once: (early,)}
    seconds = {late: 2.0, early: 1.0, after: 1.0, at_once: 0.0}
    spans = list_schedule(edges, seconds, {late: 0, early: 0, after: 1, at_once: 0})
    assert list(spans.items()) == [
        (early, (0.0, 1.0)),
        (at_once, (1.0, 1.0)),  # takes no time, so no machine
        (late, (1.0, 3.0)),
        (after, (3.0, 4.0)),
    ]


def test_clients_train_at_the_same_time_unless_one_is_available_at_a_time():
    config = recipe(**FEDSDD)
    ends = {}
    for alone in (False, True):
        spans, clients = schedule(config, 1, Simulation(one_client_at_a_time=alone))
        ends[alone] = sorted(span.end for job, span in spans.items() if job in clients)
    assert ends == {False: [1.0] * 4, True: [1.0, 2.0, 3.0, 4.0]}


def test_who_is_withdrawn_takes_no_time():
    late = {"staleness": {"cyclic": {"delays": [0, 1]}}, "withdraw_stale": True}
    spans, clients = schedule(recipe(**late), 2, Simulation())
    assert {job.round for job in clients} == {1}
    assert max(span.end for span in spans.values()) == 1.0


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"participation": "poisson"}, "participation = 'poisson', client_groups = 'by_index'"),
        ({"participation": "by_samples"}, "participation = 'by_samples'"),
        ({"client_groups": "drawn", "global_models": 2}, "client_groups = 'drawn'"),
    ],
)
def test_participants_that_nobody_knows_before_training_have_no_schedule(changes, told):
    with pytest.raises(FedstageError, match=told) as caught:
        schedule(recipe(**changes), 1, Simulation())
    assert "\n" not in str(caught.value)
