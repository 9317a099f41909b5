"""Warm workers under bad luck: each case with real processes."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import fedstage
from fedstage.execution.environment import alive

CLIENT = Path(fedstage.__file__).parent / "execution/client.py"


def start(environment, *arguments):
    return subprocess.Popen(
        [sys.executable, "-S", "-E", str(CLIENT), *map(str, arguments)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(client, timeout=600):
    output, errors = client.communicate(timeout=timeout)
    return client.returncode, output, errors


def write_recipe(environment, path):
    """The quickest stage there is."""
    return start(environment, "recipe", "--settings", '{"seed":1}', "--output", path)


def train_for_long(environment, folder):
    """A stage that would take minutes."""
    dataset = [folder / name for name in ("train", "test", "held_out", "info")]
    options = zip(["--train", "--test", "--held-out", "--info"], dataset, strict=True)
    flat = [part for pair in options for part in pair]
    assert finish(start(environment, "dataset", "--settings", '"digits"', *flat))[0] == 0
    settings = {"clients": 1, "partition": {"name": "iid"}, "validation": 0.0, "seed": 0}
    clients, histogram = folder / "clients", folder / "histogram"
    partition = ["--train", dataset[0], "--output", clients, "--histogram", histogram]
    code = finish(start(environment, "partition", "--settings", json.dumps(settings), *partition))
    assert code[0] == 0, code
    model = {"model": "logistic_regression", "seed": 0}
    initial = ["--group", "0", "--info", dataset[3], "--output", folder / "initial"]
    code = finish(start(environment, "initial_model", "--settings", json.dumps(model), *initial))
    assert code[0] == 0, code
    recipe = {
        "data": "digits", "clients": 1, "partition": "iid", "model": "logistic_regression",
        "client": {"steps": 300000, "batch_size": 4, "learning_rate": 0.1}, "seed": 0,
    }  # fmt: skip
    arguments = ["--settings", json.dumps(recipe), "--output", folder / "recipe.yaml"]
    assert finish(start(environment, "recipe", *arguments))[0] == 0
    return start(
        environment, "local_model", "--recipe", folder / "recipe.yaml", "--who", "pooled",
        "--data", dataset[0],
        "--info", dataset[3], "--clients", clients, "--start", folder / "initial",
        "--output", folder / "model", "--log", folder / "log",
    )  # fmt: skip


def pools(environment):
    """Processes of the pool that serves this test: the pool itself and its workers."""
    place = f"{environment['XDG_RUNTIME_DIR']}/"
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                command = (entry / "cmdline").read_bytes().decode().split("\0")
            except OSError:
                continue
            if "fedstage.execution.pool" in command and any(
                part.startswith(place) for part in command
            ):
                found.append(int(entry.name))
    return found


def parent(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def workers(environment):
    everyone = pools(environment)
    return [pid for pid in everyone if parent(pid) in everyone]


def busy_worker(environment):
    """Wait for a worker that computes, and return it."""

    def ticks(pid):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11])

    before = {}  # by worker, when it was first seen: an idle one never gets any further
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        for pid in workers(environment):
            if alive(pid) and ticks(pid) - before.setdefault(pid, ticks(pid)) > 20:
                return pid
        time.sleep(0.1)
    raise AssertionError("no worker is busy")


def wait_until(condition, seconds=300):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "timed out"
        time.sleep(0.05)


def test_ten_clients_at_once_start_one_pool(environment, tmp_path):
    clients = [write_recipe(environment, tmp_path / f"{number}.yaml") for number in range(10)]
    assert [finish(client)[0] for client in clients] == [0] * 10
    assert len(list(tmp_path.glob("*.yaml"))) == 10
    everyone = pools(environment)
    assert len([pid for pid in everyone if parent(pid) not in everyone]) == 1


def test_a_warm_stage_writes_what_a_cold_one_does(environment, tmp_path):
    assert finish(write_recipe(environment, tmp_path / "warm.yaml"))[0] == 0
    cold = start(environment, "--no-warm", "recipe", "--settings", '{"seed":1}',
                 "--output", tmp_path / "cold.yaml")  # fmt: skip
    assert finish(cold)[0] == 0
    off = write_recipe(environment | {"FEDSTAGE_WARM": "0"}, tmp_path / "off.yaml")
    assert finish(off)[0] == 0
    texts = {(tmp_path / name).read_text() for name in ("warm.yaml", "cold.yaml", "off.yaml")}
    assert len(texts) == 1


def test_no_warm_starts_no_pool(environment, tmp_path):
    client = write_recipe(environment | {"FEDSTAGE_WARM": "0"}, tmp_path / "a.yaml")
    assert finish(client)[0] == 0
    assert pools(environment) == []


def test_errors_and_exit_codes_come_through(environment, tmp_path):
    client = start(environment, "aggregation", "--recipe", tmp_path / "none.yaml", "--info", "i",
                   "--start", "s", "--updates", "u", "--output", "o",
                   "--participants", "p")  # fmt: skip
    code, _, errors = finish(client)
    assert code == 1
    assert errors == f"fedstage aggregation: {tmp_path}/none.yaml: No such file or directory\n"
    code, _, errors = finish(start(environment, "recipe", "--bogus"))
    assert code == 2
    assert "--settings" in errors


def test_a_killed_worker_fails_its_job_only(environment, tmp_path):
    victim = train_for_long(environment, tmp_path)
    os.kill(busy_worker(environment), signal.SIGKILL)
    code, _, errors = finish(victim)
    assert code == 1
    assert errors == (
        "fedstage local_model: the worker was killed by SIGKILL, perhaps because memory ran out; "
        "the same command goes on\n"
    )
    assert finish(write_recipe(environment, tmp_path / "next.yaml"))[0] == 0


def test_a_hung_worker_is_bounded(environment, tmp_path):
    environment["FEDSTAGE_TIMEOUT"] = "10"
    code, _, errors = finish(train_for_long(environment, tmp_path))
    assert code == 1
    assert "fedstage local_model: hung for 10 s" in errors


def test_an_interrupted_client_stops_its_worker(environment, tmp_path):
    client = train_for_long(environment, tmp_path)
    worker = busy_worker(environment)
    client.send_signal(signal.SIGINT)
    assert finish(client)[0] == 130
    wait_until(lambda: not alive(worker))
    assert finish(write_recipe(environment, tmp_path / "next.yaml"))[0] == 0


def test_the_pool_ends_with_its_owner(environment, owner, tmp_path):
    assert finish(write_recipe(environment, tmp_path / "a.yaml"))[0] == 0
    assert pools(environment) != []
    owner.kill()
    owner.wait()
    wait_until(lambda: pools(environment) == [])
    assert not list(Path(environment["XDG_RUNTIME_DIR"]).rglob("*.sock"))


def test_a_pool_of_older_source_retires(environment, tmp_path):
    assert finish(write_recipe(environment, tmp_path / "a.yaml"))[0] == 0
    older = set(pools(environment))
    newer = environment | {"FEDSTAGE_SOURCE": "that"}
    assert finish(write_recipe(newer, tmp_path / "b.yaml"))[0] == 0
    wait_until(lambda: not any(alive(pid) for pid in older))
    assert (tmp_path / "b.yaml").exists()


def test_a_folder_that_others_can_enter_is_refused(environment, tmp_path):
    folder = Path(environment["XDG_RUNTIME_DIR"]) / f"fedstage-{os.getuid()}"
    folder.mkdir(mode=0o755)
    code, _, errors = finish(write_recipe(environment, tmp_path / "a.yaml"))
    assert code == 1
    assert f"{folder} must be a directory that only you can enter" in errors
