"""Which GPUs there are, which a job may take, and which worker gets it; in one process."""

from pathlib import Path
from threading import Thread

import pytest
import torch
from tests.shared.settings import federated

from fedstage.errors import FedstageError
from fedstage.execution.gpus import CPU, Place, count_gpus, device_of, named_gpus, places
from fedstage.execution.pool import Pool
from fedstage.plan.graph import never
from fedstage.plan.source import Source, reachable
from fedstage.plan.stages import STAGES
from fedstage.settings.config_file import Execution
from fedstage.settings.recipes import Recipe
from fedstage.storage.planned import write_recipe

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
    assert list(named_gpus(named)) == names


@pytest.mark.parametrize(("usable", "count"), [(False, 0), (True, 2)])
def test_gpus_count_where_cuda_can_use_them(monkeypatch, usable, count):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: usable)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert count_gpus() == count


# --- what a job may take --------------------------------------------------------------------------


@pytest.fixture
def recipe(tmp_path, monkeypatch):
    """A function that writes a recipe with these settings, and returns its path."""
    monkeypatch.chdir(tmp_path)

    def write(name="recipe.yaml", **settings):
        write_recipe(name, Recipe.model_validate(federated(**settings)))
        return name

    return write


@pytest.mark.parametrize(
    ("numerics", "device"),
    [({"device": "cuda:1"}, "cuda:1"), ({"device": "cpu"}, "cpu"), ({"threads": 2}, "auto")],
)
def test_the_device_stands_in_the_recipe(recipe, numerics, device):
    path = recipe(numerics=numerics)
    assert device_of(["run", "local_training", path, "round=1"]) == device
    assert device_of(["run", "segment", path, "first=1", "last=2", "groups=0"]) == device


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["run", "local_training"],
        ["run", "local_training", "none.yaml"],
        ["run", "local_training", "."],
        ["run", "local_training", "broken.yaml"],
        ["run", "aggregation", "recipe.yaml"],
        ["why", "results"],
    ],
)
def test_what_needs_no_gpu_or_fails_anyway_takes_none(recipe, tmp_path, arguments):
    recipe(numerics={"device": "cuda:1"})
    (tmp_path / "broken.yaml").write_text("a: [")
    assert device_of(arguments) == "cpu"


def test_an_aggregation_takes_a_gpu_where_it_estimates_statistics(recipe):
    settings = {"numerics": {"device": "cuda:1"}, "model": {"resnet8": {"norm": "batch"}}}
    assert device_of(["run", "aggregation", recipe(**settings)]) == "cpu"
    settings |= {"aggregation": {"batch_norm": "re_estimate"}, "public": "held_out"}
    settings["data"] = {"digits": {"held_out": 100}}
    assert device_of(["run", "aggregation", recipe("other.yaml", **settings)]) == "cuda:1"


def test_stages_on_a_device_are_those_that_prepare_one():
    prepared = {name for name in STAGES if "fedstage.training.devices" in reachable(Source(name))}
    # These reach trainers, or share a module with stages that do, but compute with no model.
    others = {"advertise", "share", "masked_input", "unmask", "client_state"}
    others |= {"head_sharing", "cached_labels"}
    segments = {"segment", "logits_segment"}  # which have no source of their own
    assert prepared - others | segments == ON_DEVICE


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


class Worker:
    """A worker that is not there: it only notes what happens to it."""

    def __init__(self, place):
        self.place, self.busy, self.ended, self.did = place, False, False, []

    @property
    def idle(self):
        return not self.busy and not self.ended

    def do(self, arguments, started, seconds):
        self.did.append(tuple(arguments))
        return 3

    def end(self):
        self.ended = True


@pytest.fixture
def pool(monkeypatch):
    """A pool of two workers on the CPU and two on each GPU, which are not there."""
    made = Pool(Execution(workers=2, workers_per_gpu=2))
    monkeypatch.setattr(made, "_new", Worker)
    return made


def give(pool, device, gpus=("0", "1")):
    """Give a job to a worker, and return the worker; None if there is no room."""
    worker = pool._find(places(device, gpus))
    if worker is not None:
        worker.busy = True
    return worker


def test_the_gpu_with_the_fewest_busy_workers_is_taken(pool):
    first, second = give(pool, "auto"), give(pool, "auto")
    assert (first.place.gpu, second.place.gpu) == ("0", "1")
    third = give(pool, "auto")
    first.busy = third.busy = False
    assert give(pool, "auto") in (first, third)
    second.busy = False
    assert give(pool, "auto") is second


def test_so_many_share_a_gpu_and_the_next_waits(pool):
    taken = [give(pool, "auto") for _ in range(4)]
    assert [worker.place.gpu for worker in taken] == ["0", "1", "0", "1"]
    assert give(pool, "auto") is None
    assert [give(pool, "cpu").place for _ in range(2)] == [CPU, CPU]
    assert give(pool, "cpu") is None
    waiting = Thread(target=lambda: taken.append(pool._take(places("auto", ("0", "1")))))
    waiting.start()
    pool._give_back(taken[1], again=True)
    waiting.join(60)
    assert taken[4] is taken[1]


def test_an_idle_worker_is_used_again(pool):
    for device in ("cpu", "auto", "cuda:1"):
        worker = give(pool, device)
        worker.busy = False
        assert give(pool, device) is worker


def test_a_worker_that_ended_while_it_had_no_job_is_not_used_again(pool):
    for _ in range(3):
        worker = give(pool, "cpu")
        assert not worker.ended
        worker.busy, worker.ended = False, True


def test_jobs_that_name_a_gpu_count_on_it(pool):
    assert [give(pool, "cuda:1").place.gpu for _ in range(2)] == ["1", "1"]
    assert give(pool, "cuda:1") is None
    assert [give(pool, "auto").place for _ in range(2)] == [Place("0", "0")] * 2
    assert give(pool, "auto") is None


def test_an_idle_worker_with_the_wrong_view_is_ended_only_where_there_is_no_room(pool):
    idle = give(pool, "cuda:0")
    idle.busy = False
    assert give(pool, "auto").place == Place("0", "0")
    assert not idle.ended
    give(pool, "auto")  # on GPU 1
    assert give(pool, "auto").place == Place("0", "0")
    assert idle.ended


def test_a_worker_whose_job_failed_is_ended(pool, recipe, monkeypatch):
    """It may have left memory taken on the GPU."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5")
    made = []
    monkeypatch.setattr(pool, "_new", lambda place: made.append(Worker(place)) or made[-1])
    arguments = ["run", "local_training", recipe()]
    assert [pool.run(arguments) for _ in range(2)] == [3, 3]
    assert [worker.place for worker in made] == [Place("5", "5")] * 2
    assert all(worker.ended for worker in made)


def test_gpus_that_nobody_named_are_counted_in_a_worker_once(pool, recipe, monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    made = []
    monkeypatch.setattr(pool, "_new", lambda place: made.append(Worker(place)) or made[-1])
    arguments = ["run", "local_training", recipe()]
    for _ in range(2):
        pool.run(arguments)
    pool.run(["partition"])
    counted, first, second, other = made
    assert (counted.place, counted.did, counted.ended) == (Place(None, None), [()], True)
    assert [first.place, second.place, other.place] == [Place("0", "0"), Place("0", "0"), CPU]


def test_where_cuda_dies_or_hangs_a_worker_is_to_find_out(pool, monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    def die(worker, arguments, started, seconds):
        raise FedstageError("the worker was killed by SIGSEGV")

    monkeypatch.setattr(Worker, "do", die)
    assert pool._gpus == ("0",)
