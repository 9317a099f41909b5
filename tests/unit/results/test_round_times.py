import re

import pytest
from tests.shared.records import MACHINE, write_record
from tests.shared.settings import distilled

from fedstage.errors import FedstageError
from fedstage.plan.jobs import jobs_of
from fedstage.plan.training_folder import owners, training_id
from fedstage.results.round_times import per_participant, per_round, read_times, spread
from fedstage.settings.recipes import Recipe
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
    for job, timed in times.items():
        more = job.participant if job.stage == "local_training" else 0
        assert timed.seconds == SECONDS[job.stage] + more
        assert timed.machine == ("P", 4, "cpu")


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
    save_json(path, record | {"machine": MACHINE, "parts": parts} | changes)


@pytest.mark.parametrize("stage", ["segment", "logits_segment"])
def test_a_job_that_does_several_tells_the_seconds_of_each(root, stage):
    first, second, *others = jobs_of(RECIPE, ROUNDS)
    before = read_times(root, RECIPE, ROUNDS)
    of_several(root, [first, second], stage, [5.5, 6.5])
    times = read_times(root, RECIPE, ROUNDS)
    assert [times[first].seconds, times[second].seconds] == [5.5, 6.5]
    assert all(times[job] == before[job] for job in others)


@pytest.mark.parametrize(
    ("device", "gpu", "shown"),
    [("auto", "H", "H"), ("cuda", "H", "H"), ("cpu", "H", "cpu"), ("auto", None, "cpu")],
)
def test_the_device_is_what_the_job_used(tmp_path, device, gpu, shown):
    recipe = RECIPE.model_copy(
        update={
            "global_trainer": None,
            "numerics": RECIPE.numerics.model_copy(update={"device": device}),
        }
    )
    for job in jobs_of(recipe, 1):
        write_record(tmp_path, job.stage, [job.file], 1.0, machine=MACHINE | {"gpu": gpu})
    assert {timed.machine for timed in read_times(tmp_path, recipe, 1).values()} == {
        ("P", 4, shown)
    }


# --- a round --------------------------------------------------------------------------------------


def test_seconds_of_participants_and_of_rounds(root):
    times = read_times(root, RECIPE, ROUNDS)
    assert sorted(per_participant(times)) == [1.0] * 3 + [2.0] * 3 + [3.0] * 3 + [4.0] * 3
    assert per_round(times, ("local_training",)) == [10.0] * 3
    assert per_round(times, ("aggregation",)) == pytest.approx([0.2] * 3)
    assert per_round(times, ("logits",)) == [1.0] * 3
    assert per_round(times, ("logits", "distillation")) == [4.0] * 3
    assert per_round(times, SECONDS) == pytest.approx([14.2] * 3)


def test_rounds_without_a_stage_do_not_count(root):
    warm_up = RECIPE.model_copy(
        update={"global_trainer": RECIPE.global_trainer.model_copy(update={"warm_up": 2})}
    )
    for job in jobs_of(warm_up, ROUNDS):
        write_record(root, job.stage, [job.file], SECONDS[job.stage])
    times = read_times(root, warm_up, ROUNDS)
    assert per_round(times, ("distillation",)) == [3.0]
    assert per_round(times, ("none",)) == []


def test_spread_is_median_and_quartiles():
    assert spread([]) == []
    assert spread([2.0]) == [2.0] * 3
    assert spread([1.0, 2.0, 3.0, 4.0, 100.0]) == [3.0, 2.0, 4.0]
