from itertools import product

import pytest

from fedstage.plan import data_files
from fedstage.plan.jobs import Job, job_of, jobs_of, members
from fedstage.plan.training import (
    aggregated_model,
    aggregation,
    global_model,
    logits,
    participants_table,
)
from fedstage.plan.training_folder import training_folder
from fedstage.settings.recipes import Recipe

SERVER = {"steps": 20, "batch_size": 16, "learning_rate": 0.01}
BASE = {
    "data": "digits",
    "clients": 10,
    "partition": {"dirichlet": {"alpha": 0.1}},
    "participants": 4,
    "model": "cnn_small",
    "client": {"epochs": 1, "batch_size": 16, "learning_rate": 0.05},
    "seed": 0,
}
FEDDF = {"ensemble": "clients", "global": "basic", "server": SERVER}
FEDSDD = {
    "global_models": 2,
    "ensemble": {"aggregated": {"checkpoints": 2}},
    "global": "designated",
    "server": SERVER,
}


def recipe(**changes):
    return Recipe.model_validate({**BASE, **changes})


def short(job):
    """Name a job as the papers would: train 2.1.3 is participant 3, of group 1, in round 2."""
    name = {
        "local_training": "train",
        "aggregation": "average",
        "logits": "ask",
        "distillation": "teach",
    }[job.stage]
    place = f"{job.round}.{job.group}"
    return (
        f"{name} {place}.{job.participant}" if job.stage == "local_training" else f"{name} {place}"
    )


def drawn(recipe, last, first=1):
    edges = jobs_of(recipe, last, first)
    return {short(job): {short(one) for one in before} for job, before in edges.items()}


def test_fedavg_is_a_chain_of_rounds():
    assert drawn(recipe(participants=2), 2) == {
        "train 1.0.0": set(),
        "train 1.0.1": set(),
        "average 1.0": {"train 1.0.0", "train 1.0.1"},
        "train 2.0.0": {"average 1.0"},
        "train 2.0.1": {"average 1.0"},
        "average 2.0": {"train 2.0.0", "train 2.0.1", "average 1.0"},
    }


def test_feddf_asks_the_clients_models_and_its_next_round_waits_for_the_student():
    assert drawn(recipe(participants=2, **FEDDF), 2) == {
        "train 1.0.0": set(),
        "train 1.0.1": set(),
        "average 1.0": {"train 1.0.0", "train 1.0.1"},
        "ask 1.0": {"train 1.0.0", "train 1.0.1"},
        "teach 1.0": {"average 1.0", "ask 1.0"},
        "train 2.0.0": {"teach 1.0"},
        "train 2.0.1": {"teach 1.0"},
        "average 2.0": {"train 2.0.0", "train 2.0.1", "teach 1.0"},
        "ask 2.0": {"train 2.0.0", "train 2.0.1"},
        "teach 2.0": {"average 2.0", "ask 2.0"},
    }


def test_of_fedsdd_only_the_main_group_waits_for_the_server():
    edges = drawn(recipe(participants=2, **FEDSDD), 2)
    assert edges["train 2.0.0"] == {"teach 1.0"}
    assert edges["train 2.1.1"] == {"average 1.1"}
    assert edges["teach 1.0"] == {"average 1.0", "ask 1.0", "ask 1.1"}
    assert edges["teach 2.0"] == {"average 2.0", "ask 1.0", "ask 1.1", "ask 2.0", "ask 2.1"}
    assert edges["ask 2.1"] == {"average 2.1"}
    assert "teach 1.1" not in edges


def test_scaffold_waits_for_the_state_of_the_round_before():
    edges = drawn(recipe(participants=2, local="scaffold", **FEDSDD), 2)
    assert edges["train 2.0.0"] == {"teach 1.0", "average 1.0"}
    assert edges["train 2.1.1"] == {"average 1.1"}


@pytest.mark.parametrize("settings", [{}, FEDDF, FEDSDD, {"local": "scaffold"}], ids=str)
def test_every_job_is_there_once_and_waits_only_for_jobs_that_are_there(settings):
    edges = jobs_of(recipe(**settings), 4)
    assert {one for before in edges.values() for one in before} <= edges.keys()
    assert len({job.file for job in edges}) == len(edges)
    assert list(edges) == sorted(edges)
    trains = [(job.round, job.participant) for job in edges if job.stage == "local_training"]
    assert sorted(trains) == list(product(range(1, 5), range(4)))


def test_jobs_behind_earlier_rounds_are_not_followed():
    cut = jobs_of(recipe(**FEDSDD), 5, first=5)
    whole = jobs_of(recipe(**FEDSDD), 5)
    assert cut == {job: before for job, before in whole.items() if job.round == 5}
    assert {one.round for before in cut.values() for one in before} == {4, 5}


def test_files_of_one_job_are_one_job():
    method = recipe(local="scaffold")
    model = aggregated_model(method, 3, 0)
    made = [model, participants_table(method, 3, 0), aggregation(method, 3, 0, output="new_state")]
    assert {job_of(file) for file in made} == {Job(3, 0, "aggregation", model)}


def test_what_is_of_no_round_has_no_job():
    method = recipe()
    assert job_of(f"{training_folder(method)}/recipe.yaml") is None
    assert job_of(global_model(method, 0, 0)) is None
    assert job_of(data_files.clients_table(method)) is None


def test_members_are_the_models_that_logits_read_or_draw():
    for config, members_of in ((recipe(**FEDDF), 4), (recipe(**FEDSDD), 1)):
        asked = [job for job in jobs_of(config, 2) if job.stage == "logits"]
        assert [members(job) for job in asked] == [members_of] * len(asked)
        assert asked
    for kind, number in (("gaussian_10", 10), ("dirichlet_3_0.5", 3)):
        assert members(job_of(logits(recipe(), 1, 0, kind, "held_out"))) == number
