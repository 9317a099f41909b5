"""Seconds of clients and of the server, and by round, from records as jobs write them."""

import re

import pytest
from measured import described
from tests.shared.records import MACHINE, write_record
from tests.shared.settings import SERVER, distilled, one_shot

from fedstage.errors import FedstageError
from fedstage.experiments.runs_file import ExperimentRun
from fedstage.plan import one_shot as shot
from fedstage.plan import unfederated
from fedstage.plan.one_shot_sharing import local_recipe
from fedstage.plan.stages import jobs_of
from fedstage.plan.training_folder import owners, training_id
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.recipes import LocalRecipe, Recipe
from fedstage.stages import costs
from fedstage.stages.costs import read_times
from fedstage.storage.files import save_json

PARTS = {"ensemble": {"aggregated": {"checkpoints": 2}}, "global": "designated"}
RECIPE = Recipe.model_validate(
    distilled(
        data={"digits": {"held_out": 100}}, clients=10, participants=4, global_models=2, **PARTS
    )
)
ROUNDS = 3
SECONDS = {"local_training": 1.0, "aggregation": 0.1, "logits": 0.5, "distillation": 3.0}


@pytest.fixture
def root(tmp_path):
    """A folder with records of a run: participant s takes s + 1 seconds in every round."""
    for job in jobs_of(RECIPE, ROUNDS):
        more = job.participant if job.stage == "local_training" else 0
        write_record(tmp_path, job.stage, [job.file], SECONDS[job.stage] + more)
    return tmp_path


def test_every_job_has_the_seconds_of_its_record(root):
    times = read_times(root, RECIPE, ROUNDS)
    assert times.keys() == jobs_of(RECIPE, ROUNDS).keys()
    for job, seconds in times.items():
        more = job.participant if job.stage == "local_training" else 0
        assert seconds == SECONDS[job.stage] + more


def test_a_job_without_a_record_is_named(root):
    job = next(job for job in jobs_of(RECIPE, ROUNDS) if job.stage == "distillation")
    for path in root.glob("results/logs/distillation/**/*.json"):
        path.unlink()
    with pytest.raises(FedstageError, match=rf"^{re.escape(job.file)}: no record below"):
        read_times(root, RECIPE, ROUNDS)


def test_what_nobody_reads_of_the_last_round_need_not_have_been_made(tmp_path):
    """Students of other groups: a round for each participant leaves them out."""
    basic = RECIPE.model_validate(RECIPE.model_dump(by_alias=True) | {"global": {"name": "basic"}})
    jobs = jobs_of(basic, ROUNDS)
    (unread,) = (
        job for job in jobs if (job.stage, job.round, job.group) == ("distillation", ROUNDS, 1)
    )
    for job in jobs.keys() - {unread}:
        write_record(tmp_path, job.stage, [job.file], SECONDS[job.stage])
    assert read_times(tmp_path, basic, ROUNDS).keys() == jobs.keys() - {unread}
    write_record(tmp_path, unread.stage, [unread.file], 3.0)
    assert read_times(tmp_path, basic, ROUNDS).keys() == jobs.keys()


def of_several(root, jobs, stage, seconds, **changes):
    """One record of several jobs, which tells the seconds of each."""
    parts = {job.file: one for job, one in zip(jobs, seconds, strict=True)}
    name = f"later_{training_id(owners(RECIPE)[1])}.json"
    path = root / "results/logs" / stage / name
    path.parent.mkdir(exist_ok=True)
    record = {"stage": stage, "made": "2027", "compute_s": 99.0, "outputs": {}, "options": {}}
    record |= {"inputs": {}, "versions": {}, "source": None, "startup_s": 0.1}
    record |= {"peak_memory_mb": 1.0}
    save_json(path, record | {"machine": MACHINE, "parts": parts} | changes)


@pytest.mark.parametrize("stage", ["segment", "logits_segment"])
def test_a_job_that_does_several_tells_the_seconds_of_each(root, stage):
    first, second, *others = jobs_of(RECIPE, ROUNDS)
    before = read_times(root, RECIPE, ROUNDS)
    of_several(root, [first, second], stage, [5.5, 6.5])
    times = read_times(root, RECIPE, ROUNDS)
    assert [times[first], times[second]] == [5.5, 6.5]
    assert all(times[job] == before[job] for job in others)


# --- sides ----------------------------------------------------------------------------------------

LOCAL = one_shot() | {"data": {"digits": {"held_out": 100}}, "clients": 3}
BASE = LOCAL | {"server": SERVER}
TAUGHT = BASE | {"public": "held_out", "aggregator": "averaging", "distillation": "kl"}
MLP = {"aggregator_fraction": 0.1, "aggregator": "mlp"}
TRAINED = {
    "federated": {"federated": {"rounds": 5}},
}


def flat(files):
    return [
        one for value in files.values() for one in ([value] if isinstance(value, str) else value)
    ]


def of_models(root, recipe):
    """Records of the clients' models: 1, 2 and 4 seconds."""
    local = local_recipe(recipe)
    for client, model in enumerate(unfederated.local_models(local)):
        write_record(root, "local_model", [model], 2.0**client, flat(model.job.inputs))


def of_logits(root, recipe, images, seconds):
    local = local_recipe(recipe)
    for client in range(recipe.clients):
        path = unfederated.client_logits(local, f"client_{client}", images)
        read = flat(path.job.inputs)
        write_record(root, "client_logits", [path], seconds, read, options={"images": images})


def of_aggregator(root, recipe, seconds):
    made = shot.aggregator(recipe)
    write_record(root, "aggregator", [made], seconds, flat(shot.aggregator.job(recipe).inputs))


def seconds_of(recipe):
    """The seconds of clients and of the server, from the file of costs, in the working folder."""
    kinds = {Recipe: "federated", OneShotRecipe: "one_shot", LocalRecipe: "local"}
    part = {"length": {"rounds": 1}, kinds[type(recipe)]: recipe}
    run = described({"method": "a", "seed": 0}, candidates=[{"parts": [part]}])
    sides = {"clients": 0.0, "server": 0.0}
    for row in costs._seconds(ExperimentRun.model_validate(run)):
        if row["side"] in sides:
            sides[row["side"]] += row["seconds"]
    return sides


# --- one round ------------------------------------------------------------------------------------


def test_a_student_costs_the_server_and_what_is_before_it_the_clients(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    recipe = OneShotRecipe.model_validate(TAUGHT)
    of_models(tmp_path, recipe)
    of_logits(tmp_path, recipe, "held_out", 10.0)
    of_logits(tmp_path, recipe, "test", 1000.0)  # evaluation, which does not count
    of_aggregator(tmp_path, recipe, 0.5)
    made = shot.student_file(recipe)
    write_record(
        tmp_path, "distilled_model", [made], 100.0, flat(shot.distilled_model.job(recipe).inputs)
    )
    assert seconds_of(recipe) == {"clients": 7.0, "server": 130.5}


def test_moments_are_measured_by_clients_and_the_head_is_the_servers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    recipe = OneShotRecipe.model_validate(
        BASE | {"model": "resnet8", "distillation": "closed_form"}
    )
    for client in range(recipe.clients):
        job = shot.feature_moments.job(recipe, client)
        write_record(
            tmp_path, "feature_moments", [*job.files.values()], 2.0**client, flat(job.inputs)
        )
    job = shot.closed_form_model.job(recipe)
    write_record(tmp_path, "closed_form_model", [*job.files.values()], 0.5, flat(job.inputs))
    assert seconds_of(recipe) == {"clients": 7.0, "server": 0.5}


def test_clients_that_train_an_aggregator_pay_for_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = {"data": {"digits": {"held_out": 100, "server_validation": 20}}}
    training = {"aggregator_training": TRAINED["federated"]}
    recipe = OneShotRecipe.model_validate(BASE | data | MLP | training)
    of_models(tmp_path, recipe)
    of_logits(tmp_path, recipe, "aggregator", 10.0)
    of_aggregator(tmp_path, recipe, 20.0)
    assert seconds_of(recipe) == {"clients": 57.0, "server": 0.0}


def test_a_job_of_several_files_counts_once_and_its_last_record(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    recipe = OneShotRecipe.model_validate(BASE | {"aggregator": "averaging"})
    of_models(tmp_path, recipe)
    made = shot.aggregator(recipe)
    files = [made, shot.aggregator(recipe, output="snapshots")]
    read = flat(shot.aggregator.job(recipe).inputs)
    write_record(tmp_path, "aggregator", files, 99.0, read, made="2025")
    write_record(tmp_path, "aggregator", files, 3.0, read, made="2026")
    assert seconds_of(recipe) == {"clients": 7.0, "server": 3.0}
