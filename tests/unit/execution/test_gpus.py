"""Which GPUs there are, which a job may take, and which worker gets it; in one process."""

import os
import signal
from pathlib import Path

import pytest
import torch

from fedstage.execution import gpus, pool
from fedstage.execution.gpus import CPU, Place, count_gpus, device_of, places, visible_gpus
from fedstage.plan.graph import never
from fedstage.plan.source import reachable
from fedstage.plan.stages import STAGES

RULES = Path(__file__).parents[3] / "workflow/rules"
ON_DEVICE = {name for name, stage in STAGES.items() if stage.on_device is not never}


# --- the GPUs of a machine ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("named", "names"),
    [
        ("", []),
        ("1", ["1"]),
        ("0,2,1", ["0", "2", "1"]),
        (" 0, 1 ", ["0", "1"]),
        ("GPU-8932f937,GPU-1", ["GPU-8932f937", "GPU-1"]),
        ("MIG-GPU-89/1/0", ["MIG-GPU-89/1/0"]),
        ("0,-1,1", ["0"]),  # the usual ways of hiding GPUs
        ("-1", []),
        ("NoDevFiles", []),
        ("0,0", []),
    ],
)
def test_named_gpus_are_those_that_cuda_takes(named, names):
    assert list(visible_gpus(named)) == names


def test_gpus_that_nobody_named_are_counted(monkeypatch):
    monkeypatch.setattr(gpus, "count_gpus", lambda: 3)
    assert visible_gpus(None) == ("0", "1", "2")


@pytest.mark.parametrize(("usable", "count"), [(False, 0), (True, 2)])
def test_cuda_is_asked_in_another_process(monkeypatch, usable, count):
    asked = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: asked.append(1) or usable)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert count_gpus() == count
    assert asked == []


def test_where_cuda_dies_a_worker_is_to_find_out(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: os.kill(os.getpid(), signal.SIGKILL))
    assert count_gpus() == 1


def test_cuda_that_does_not_answer_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(gpus, "ANSWER_SECONDS", 0.1)
    monkeypatch.setattr(torch.cuda, "is_available", signal.pause)
    assert count_gpus() == 1


# --- what a job may take --------------------------------------------------------------------------


@pytest.fixture
def recipe(tmp_path):
    """A function that writes a recipe with these settings."""

    def write(text):
        (tmp_path / "recipe.yaml").write_text(text)
        return "recipe.yaml"

    return write


NAMED = "settings: {numerics: {threads: 1, device: cuda:1}}"


@pytest.mark.parametrize(
    ("text", "device"),
    [
        (NAMED, "cuda:1"),
        ("settings: {numerics: {device: cpu}}", "cpu"),
        ("settings: {numerics: {threads: 2}}", "auto"),
        ("settings: {seed: 1}", "auto"),
        ("settings: ", "auto"),
        ("a: [", "cpu"),
        ("just text", "cpu"),
    ],
)
def test_the_device_stands_in_the_line(recipe, tmp_path, text, device):
    assert (
        device_of(tmp_path, ["local_training", "--round", "1", "--recipe", recipe(text)]) == device
    )


def test_a_line_may_be_given_with_an_equals_sign_or_a_full_path(recipe, tmp_path):
    given = f"--recipe={tmp_path / recipe(NAMED)}"
    assert device_of(Path("/"), ["distillation", given, "--round", "1"]) == "cuda:1"


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["local_training"],
        ["local_training", "--recipe"],
        ["local_training", "--recipe", "none.yaml"],
        ["local_training", "--recipe", "."],
        ["aggregation", "--recipe", "recipe.yaml"],
        ["why", "results"],
    ],
)
def test_what_needs_no_gpu_or_fails_anyway_takes_none(recipe, tmp_path, arguments):
    recipe(NAMED)
    assert device_of(tmp_path, arguments) == "cpu"


def test_an_aggregation_takes_a_gpu_where_it_estimates_statistics(recipe, tmp_path):
    arguments = ["aggregation", "--recipe", str(recipe(NAMED)), "--round", "1"]
    assert device_of(tmp_path, arguments) == "cpu"
    recipe(NAMED.replace("{numerics", "{aggregation: {batch_norm: re_estimate}, numerics"))
    assert device_of(tmp_path, arguments) == "cuda:1"


def test_stages_on_a_device_are_those_that_prepare_one():
    prepared = {
        name
        for name, stage in STAGES.items()
        if "fedstage.training.devices" in reachable(name, calls=stage.calls)[0]
    }
    # These reach trainers, or share a module with stages that do, but compute with no model.
    others = {"advertise", "share", "masked_input", "unmask", "client_state"}
    others |= {"head_sharing", "cached_labels"}
    assert prepared - others == ON_DEVICE


@pytest.mark.parametrize("device", ["cpu", "auto", "cuda", "cuda:0", "cuda:1"])
def test_without_gpus_every_job_runs_on_the_cpu(device):
    assert places(device, ()) == [CPU]


def test_a_job_may_take_any_gpu_and_then_sees_only_this():
    either = [Place("0", "0"), Place("2", "2")]
    assert places("auto", ("0", "2")) == places("cuda", ("0", "2")) == either
    assert places("cpu", ("0", "2")) == [CPU]


@pytest.mark.parametrize(
    ("device", "gpu"), [("cuda:0", "3"), ("cuda:1", "GPU-5"), ("cuda:2", "GPU-5")]
)
def test_a_job_that_names_a_number_counts_as_without_a_pool(device, gpu):
    assert places(device, ("3", "GPU-5")) == [Place(gpu, "3,GPU-5")]


# --- which worker gets it -------------------------------------------------------------------------


@pytest.fixture
def workers(monkeypatch, tmp_path):
    """A pool of two workers on the CPU and two on each GPU; forking and ending are only noted."""
    made = pool.Pool(tmp_path / "socket", None, 0, size=2, per_gpu=2, timeout=1, source="")

    def fork(pool_, place):
        pool_.workers.append(pool.Worker(len(pool_.workers), None, place))
        return pool_.workers[-1]

    monkeypatch.setattr(pool, "fork_worker", fork)
    monkeypatch.setattr(pool, "end", lambda pool_, worker: pool_.workers.remove(worker))
    return made


def give(workers, device, gpus=("0", "1")):
    """Give a job to a worker, and return the worker."""
    worker = pool.find_worker(workers, places(device, gpus))
    if worker is not None:
        worker.client = object()
    return worker


def test_the_gpu_with_the_fewest_busy_workers_is_taken(workers):
    first, second = give(workers, "auto"), give(workers, "auto")
    assert (first.place.gpu, second.place.gpu) == ("0", "1")
    third = give(workers, "auto")
    first.client = third.client = None
    assert give(workers, "auto").place.gpu == "0"
    second.client = None
    assert give(workers, "auto").place.gpu == "1"
    assert len(workers.workers) == 3


def test_so_many_share_a_gpu_and_the_next_waits(workers):
    assert [give(workers, "auto").place.gpu for _ in range(4)] == ["0", "1", "0", "1"]
    assert give(workers, "auto") is None
    assert [give(workers, "cpu").place for _ in range(2)] == [CPU, CPU]
    assert give(workers, "cpu") is None


def test_an_idle_worker_is_used_again(workers):
    for device in ("cpu", "auto", "cuda:1"):
        worker = give(workers, device)
        worker.client = None
        assert give(workers, device) is worker


def test_jobs_that_name_a_gpu_count_on_it(workers):
    assert [give(workers, "cuda:1").place.gpu for _ in range(2)] == ["1", "1"]
    assert give(workers, "cuda:1") is None
    assert [give(workers, "auto").place for _ in range(2)] == [Place("0", "0")] * 2
    assert give(workers, "auto") is None


def test_an_idle_worker_with_the_wrong_view_is_ended_only_where_there_is_no_room(workers):
    gpus = ("0", "1")
    idle = give(workers, "cuda:0", gpus)
    idle.client = None
    pinned = give(workers, "auto", gpus)
    assert pinned.place == Place("0", "0")
    assert idle in workers.workers
    give(workers, "auto", gpus)  # on GPU 1
    assert give(workers, "auto", gpus).place == Place("0", "0")
    assert idle not in workers.workers
    assert len([one for one in workers.workers if one.place.gpu == "0"]) == 2
