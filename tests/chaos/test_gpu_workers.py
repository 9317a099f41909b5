"""Workers and GPUs that are not there: which CUDA_VISIBLE_DEVICES each job has, in real processes.

The pool has stages of this test in it: `probe`, which may use a GPU, and `other`, which may not.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import fedstage

CLIENT = Path(fedstage.__file__).parent / "execution/client.py"

# Python runs this file at the start of the pool.
STAGES_OF_THE_TEST = '''
import json, os, sys, time
from pathlib import Path
from types import ModuleType

from fedstage.plan.graph import Command, always, never
from fedstage.plan.stages import STAGES


def probe(
    *, recipe: Path | None = None, output: Path, until: Path | None = None, fails: str | None = None
) -> None:
    """Write down what the worker sees, and wait."""
    seen = {"visible": os.environ["CUDA_VISIBLE_DEVICES"], "worker": os.getpid()}
    output.with_suffix(".part").write_text(json.dumps(seen))
    output.with_suffix(".part").rename(output)
    while until and not until.exists():
        time.sleep(0.02)
    if fails:
        import torch

        raise torch.OutOfMemoryError("CUDA out of memory.")


for name in ("probe", "other"):
    module = ModuleType(f"fedstage.stages.{name}")
    setattr(module, name, probe)
    sys.modules[module.__name__] = module
    STAGES[name] = Command(name=name, about=name, on_device=always if name == "probe" else never)
'''


@pytest.fixture
def pool_with(environment, tmp_path):
    """A function that gives the environment of a pool with these GPUs."""
    (tmp_path / "python").mkdir()
    (tmp_path / "python/sitecustomize.py").write_text(STAGES_OF_THE_TEST)
    path = f"{tmp_path}/python{os.pathsep}{Path(fedstage.__file__).parents[1]}"

    def pool(gpus, **variables):
        return environment | {"PYTHONPATH": path, "CUDA_VISIBLE_DEVICES": gpus} | variables

    return pool


class Client:
    """A job, and what it has said so far."""

    def __init__(self, environment, folder, name, stage="probe", device="auto", **options):
        self.output = folder / f"{name}.json"
        recipe = folder / f"{device}.yaml"
        settings = {"numerics": {"device": device}, "client": {"batch_size": 64}}
        recipe.write_text(json.dumps({"settings": settings}))
        words = [f"--{key}={value}" for key, value in options.items()]
        self.process = subprocess.Popen(
            [sys.executable, "-S", "-E", str(CLIENT), stage, "--recipe", recipe,
             "--output", self.output, *words],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def seen(self, seconds=60):
        deadline = time.monotonic() + seconds
        while not self.output.exists():
            assert time.monotonic() < deadline, "it does not run"
            time.sleep(0.02)
        return json.loads(self.output.read_text())

    def waits(self):
        time.sleep(0.7)
        return not self.output.exists()

    def finish(self):
        _, errors = self.process.communicate(timeout=60)
        return self.process.returncode, errors


def test_each_job_has_a_gpu_of_its_own_and_one_that_is_killed_gives_it_back(pool_with, tmp_path):
    pool, go = pool_with("0,1"), tmp_path / "go"
    first, second = (Client(pool, tmp_path, name, until=go) for name in ("first", "second"))
    held = {client.seen()["visible"]: client for client in (first, second)}
    assert set(held) == {"0", "1"}
    third = Client(pool, tmp_path, "third", until=go)
    assert third.waits()
    cpu = Client(pool, tmp_path, "cpu", device="cpu")
    assert cpu.seen()["visible"] == ""
    other = Client(pool, tmp_path, "other", stage="other")
    assert other.seen()["visible"] == ""
    assert (cpu.finish(), other.finish()) == ((0, ""), (0, ""))
    victim = held.pop("1")
    os.kill(victim.seen()["worker"], signal.SIGKILL)
    code, errors = victim.finish()
    assert code == 1
    assert "fedstage probe: the worker was killed by SIGKILL" in errors
    assert third.seen()["visible"] == "1"
    go.touch()
    assert (held["0"].finish(), third.finish()) == ((0, ""), (0, ""))
    again = Client(pool, tmp_path, "again")
    assert again.seen()["worker"] in {held["0"].seen()["worker"], third.seen()["worker"]}
    assert again.finish() == (0, "")


def test_workers_share_the_one_gpu_that_slurm_gave(pool_with, tmp_path):
    pool, go = pool_with("1", FEDSTAGE_WORKERS_PER_GPU="2"), tmp_path / "go"
    clients = [Client(pool, tmp_path, name, until=go) for name in ("first", "second")]
    assert [client.seen()["visible"] for client in clients] == ["1", "1"]
    assert len({client.seen()["worker"] for client in clients}) == 2
    third = Client(pool, tmp_path, "third")
    assert third.waits()
    third.process.send_signal(signal.SIGINT)
    third.finish()
    go.touch()
    assert [client.finish() for client in clients] == [(0, ""), (0, "")]
    assert not third.output.exists()


def test_a_job_that_names_its_gpu_sees_all_and_takes_the_place_of_an_idle_worker(
    pool_with, tmp_path
):
    pool = pool_with("2,GPU-5")
    pinned = Client(pool, tmp_path, "pinned")
    assert pinned.seen()["visible"] == "2"
    assert pinned.finish() == (0, "")
    named = Client(pool, tmp_path, "named", device="cuda:0")
    assert named.seen()["visible"] == "2,GPU-5"
    assert named.finish() == (0, "")
    assert not Path(f"/proc/{pinned.seen()['worker']}").exists()


def test_a_job_that_runs_out_of_memory_leaves_none_taken(pool_with, tmp_path):
    pool = pool_with("0", FEDSTAGE_WORKERS_PER_GPU="1")
    failed = Client(pool, tmp_path, "failed", fails="yes")
    code, told = failed.finish()
    assert code == 1
    assert told.endswith("OutOfMemoryError: CUDA out of memory.\n")
    following = Client(pool, tmp_path, "following")
    assert following.finish() == (0, "")
    assert following.seen()["visible"] == "0"
    assert following.seen()["worker"] != failed.seen()["worker"]
    assert not Path(f"/proc/{failed.seen()['worker']}").exists()


def test_a_stage_on_a_machine_without_gpus_takes_the_cpu_or_refuses(pool_with, tmp_path):
    pool = pool_with("")

    def train(device):
        recipe = {
            "data": "digits", "clients": 1, "partition": "iid", "participants": 1, "seed": 0,
            "model": "logistic_regression", "numerics": {"device": device},
            "client": {"steps": 1, "batch_size": 4, "learning_rate": 0.1},
        }  # fmt: skip
        options = ["--settings", json.dumps(recipe), "--output", f"{device}.yaml"]
        assert call(pool, tmp_path, "recipe", *options) == (0, "")
        files = ("data", "info", "clients", "participation", "start", "outputs")
        words = [word for file in files for word in (f"--{file}", f"no-{file}")]
        numbers = ["--round", "1", "--group", "0", "--participants", "0"]
        return call(
            pool, tmp_path, "local_training", "--recipe", f"{device}.yaml", *numbers, *words
        )

    assert train("cuda:1") == (
        1,
        "fedstage local_training: numerics.device = 'cuda:1': this machine has 0 usable GPUs; "
        "use auto or cpu\n",
    )
    assert "no-info: no such file" in train("auto")[1].lower()


def call(environment, folder, *words):
    command = [sys.executable, "-S", "-E", str(CLIENT), *words]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    return done.returncode, done.stderr
