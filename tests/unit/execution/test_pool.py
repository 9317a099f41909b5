"""Workers of a pool, with real processes: what they run, and how they end."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

import fedstage
from fedstage.errors import FedstageError
from fedstage.execution.pool import Pool
from fedstage.settings.config_file import Execution

# Python runs this file at the start of the fork server: a stage of this test.
PROBE = '''
import json, os, time

from fedstage.execution import jobs
from fedstage.execution.jobs import Work


def probe(output, does=""):
    """Write down what the worker sees, and do as it is told."""
    seen = {"visible": os.environ["CUDA_VISIBLE_DEVICES"], "worker": os.getpid(),
            "folder": os.getcwd()}
    output.with_suffix(".part").write_text(json.dumps(seen))
    output.with_suffix(".part").rename(output)
    if does == "waits":
        time.sleep(600)
    if does and does.isdecimal():
        os._exit(int(does))
    if does:
        raise RuntimeError(does)


def job_of(name, output, words):
    log = str(output.with_suffix(".record"))
    return Work(name, log, {}, {}, [], lambda: probe(output, *words))


jobs.job_of = job_of
'''


@pytest.fixture(scope="module")
def probing(tmp_path_factory):
    """The environment of a fork server with a stage that tests tell what to do."""
    folder = tmp_path_factory.mktemp("python")
    (folder / "sitecustomize.py").write_text(PROBE)
    path = f"{folder}{os.pathsep}{Path(fedstage.__file__).parents[1]}"
    return {"PYTHONPATH": path, "CUDA_VISIBLE_DEVICES": ""}


@pytest.fixture(scope="module")
def pool(probing):
    """A pool with room for two workers, for several tests."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in probing.items():
            patch.setenv(name, value)
        made = Pool(Execution(workers=2, timeout=600))
        made.start()
        yield made
        made.stop()


def probe(pool, output, does=""):
    return pool.run(["run", "probe", str(output), *([does] if does else [])])


def read(output, seconds=120):
    """Wait until a probe has written what it sees, and return that."""
    until(output.exists, seconds)
    return json.loads(output.read_text())


def until(condition, seconds=120):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def in_a_thread(pool, *arguments):
    """Run a probe in a thread; return the thread, and the list that its error is put into."""
    told = []

    def run():
        try:
            told.append(probe(pool, *arguments))
        except FedstageError as error:
            told.append(str(error))

    thread = threading.Thread(target=run)
    thread.start()
    return thread, told


def alive(pid):
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


def test_a_worker_runs_one_stage_after_the_other_in_the_folder_of_the_call(
    pool, tmp_path, monkeypatch
):
    seen = []
    for name in ("first", "second"):
        folder = tmp_path / name
        folder.mkdir()
        monkeypatch.chdir(folder)
        assert probe(pool, "seen.json") == 0
        seen.append(read(folder / "seen.json"))
        assert seen[-1]["folder"] == str(folder)
    assert seen[0]["worker"] == seen[1]["worker"] != os.getpid()
    assert seen[0]["visible"] == ""


def test_a_stage_that_fails_gives_its_exit_code_and_the_next_has_a_new_worker(pool, tmp_path):
    assert pool.run(["run"]) == 1
    assert probe(pool, tmp_path / "a", "fail") == 1
    assert probe(pool, tmp_path / "b") == 0
    assert not alive(read(tmp_path / "a")["worker"])


@pytest.mark.parametrize(
    ("number", "how"),
    [
        (signal.SIGKILL, "was killed by SIGKILL, perhaps because memory ran out"),
        (signal.SIGSEGV, "was killed by SIGSEGV"),
        (signal.SIGTERM, "was killed by SIGTERM"),
    ],
)
def test_a_worker_that_is_killed_fails_its_own_job_only(pool, tmp_path, number, how):
    victim, told = in_a_thread(pool, tmp_path / "victim", "waits")
    pid = read(tmp_path / "victim")["worker"]
    assert probe(pool, tmp_path / "beside") == 0
    os.kill(pid, number)
    victim.join(60)
    assert told == [f"the worker {how}; the same command goes on"]
    assert probe(pool, tmp_path / "after") == 0


def test_a_worker_that_ends_itself_fails_its_job(pool, tmp_path):
    with pytest.raises(FedstageError, match="the worker ended with exit code 3; the same command"):
        probe(pool, tmp_path / "a", "3")


def test_a_worker_that_is_killed_between_two_jobs_fails_none(pool, tmp_path):
    assert probe(pool, tmp_path / "a") == 0
    os.kill(read(tmp_path / "a")["worker"], signal.SIGKILL)
    until(lambda: not any(worker.idle for worker in pool._workers))  # which its parent tells
    assert probe(pool, tmp_path / "b") == 0


def test_without_the_fork_server_running_jobs_fail_and_the_next_has_another(
    pool, tmp_path, monkeypatch
):
    victim, told = in_a_thread(pool, tmp_path / "victim", "waits")
    worker = read(tmp_path / "victim")["worker"]
    os.kill(int(Path(f"/proc/{worker}/stat").read_text().split()[3]), signal.SIGKILL)
    victim.join(60)
    assert told == ["the workers were ended; the same command goes on"]
    until(lambda: not alive(worker))
    monkeypatch.setattr(pool._server._process, "poll", lambda: None)  # it may not be known yet
    assert probe(pool, tmp_path / "after") == 0


def test_a_stage_that_hangs_is_ended(pool, tmp_path, monkeypatch):
    monkeypatch.setattr(pool, "_timeout", 0.2)
    with pytest.raises(FedstageError, match=r"hung for 0 s \(execution.timeout\)"):
        probe(pool, tmp_path / "hung", "waits")
    monkeypatch.undo()
    hung = tmp_path / "hung"
    assert not hung.exists() or not alive(read(hung)["worker"])
    assert probe(pool, tmp_path / "after") == 0


def test_a_pool_that_stops_ends_jobs_that_run_and_wait_and_starts_no_more(
    probing, tmp_path, monkeypatch
):
    for name, value in probing.items():
        monkeypatch.setenv(name, value)
    pool = Pool(Execution(workers=1))
    running, told = in_a_thread(pool, tmp_path / "running", "waits")
    worker = read(tmp_path / "running")["worker"]
    waiting, told_too = in_a_thread(pool, tmp_path / "waiting")
    pool.stop()
    for thread in (running, waiting):
        thread.join(60)
    assert told == ["the workers were ended; the same command goes on"]
    assert told_too == ["the run was stopped"]
    until(lambda: not alive(worker))
    assert not (tmp_path / "waiting").exists()


OWNER = """
import sys
from fedstage.execution.pool import Pool
from fedstage.settings.config_file import Execution

Pool(Execution()).run(["run", "probe", sys.argv[1], "waits"])
"""


def test_workers_end_with_the_process_of_their_pool_however_that_ends(probing, tmp_path):
    output = tmp_path / "seen"
    owner = subprocess.Popen([sys.executable, "-c", OWNER, output], env=os.environ | probing)
    worker = read(output)["worker"]
    owner.kill()
    owner.wait()
    until(lambda: not alive(worker))


def test_a_pool_whose_fork_server_cannot_start_says_so(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(
        "fedstage.execution.pool.PYTHON", (sys.executable, "-c", "raise ImportError('torch')")
    )
    with pytest.raises(FedstageError, match="the workers were ended"):
        Pool(Execution()).run(["partition"])
    assert "ImportError: torch" in capfd.readouterr().err
