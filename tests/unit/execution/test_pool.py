"""The client and the pool in one process; `tests/chaos` runs them as users do, in several."""

import os
import re
import selectors
import signal
import socket
import stat
import struct
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from fedstage.execution import client, gpus, pool, supervision, worker
from fedstage.execution.environment import alive, prepare
from fedstage.settings.config_file import Execution

SETTINGS = '{"seed":1}'


@pytest.fixture
def owner():
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    yield process
    process.kill()
    process.wait()


@pytest.fixture
def environment(owner, tmp_path, monkeypatch):
    for name, value in {
        "XDG_RUNTIME_DIR": str(tmp_path),
        "FEDSTAGE_OWNER": f"{socket.gethostname()}-{owner.pid}",
        "FEDSTAGE_SOURCE": "this",
        "FEDSTAGE_WORKERS": "1",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("FEDSTAGE_WARM", raising=False)


@pytest.fixture
def served(environment, owner):
    """A pool that serves in a thread of this process until its owner is killed."""
    path = client.socket_path()
    listener = socket.socket(fileno=client.listen(path).detach())
    thread = threading.Thread(target=pool.main, args=(path, listener))
    thread.start()
    yield path
    owner.kill()
    owner.wait()
    thread.join(30)
    assert not thread.is_alive()
    assert not Path(path).exists()


def recipe(output):
    return ["recipe", "--settings", SETTINGS, "--output", str(output)]


def test_a_stage_runs_in_a_worker(served, tmp_path):
    assert client.main(recipe(tmp_path / "recipe.yaml")) == 0
    assert "seed: 1" in (tmp_path / "recipe.yaml").read_text()


def test_one_worker_serves_many_clients_in_turn(served, tmp_path):
    codes = []
    clients = [
        threading.Thread(
            target=lambda n=n: codes.append(client.main(recipe(tmp_path / f"{n}.yaml")))
        )
        for n in range(5)
    ]
    for one in clients:
        one.start()
    for one in clients:
        one.join()
    assert codes == [0] * 5
    assert len(list(tmp_path.glob("*.yaml"))) == 5


def test_an_exit_code_comes_back(served, capfd, tmp_path):
    assert client.main(["recipe", "--bogus"]) == 2
    assert "--settings" in capfd.readouterr().err


def test_a_pool_started_for_other_source_says_so(served, tmp_path, monkeypatch):
    # The pool is a thread here: it must have read its own source before the client's changes.
    assert client.main(recipe(tmp_path / "recipe.yaml")) == 0
    monkeypatch.setenv("FEDSTAGE_SOURCE", "that")
    connection = client.connect(served)
    client.send_request(connection, ["recipe"], 0.0)
    assert client.receive(connection) == client.RETIRED
    connection.close()
    deadline = time.monotonic() + 10
    while Path(served).exists() and time.monotonic() < deadline:
        time.sleep(0.01)


def test_a_connection_without_request_is_dropped(served, tmp_path):
    client.connect(served).close()
    assert client.main(recipe(tmp_path / "recipe.yaml")) == 0


def open_files():
    return len(os.listdir("/proc/self/fd"))


def until(condition, seconds=10):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert condition()


def block(*fields):
    """A request of these fields."""
    payload = "\0".join(fields).encode()
    return len(payload).to_bytes(client.LENGTH, "little") + payload


def send(path, data, files=(1, 2)):
    """Send data and open files to a pool; return the connection."""
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(10)
    connection.connect(path)
    socket.send_fds(connection, [data], files)
    return connection


def all_of(connection):
    """What comes until the end of a connection, which is broken if the pool has not read all."""
    try:
        return b"".join(iter(lambda: connection.recv(100), b""))
    except ConnectionResetError:
        return b""


def test_malformed_requests_are_dropped_and_leave_no_open_file(served, tmp_path):
    assert client.main(recipe(tmp_path / "first.yaml")) == 0
    before = open_files()
    folder, words = str(tmp_path), ["recipe", "--settings", SETTINGS]
    good = block("this", "0.5", folder, "", "18", *words)
    malformed = {
        "an endless one": ((2**40).to_bytes(8, "little") + b"this", (1, 2)),
        "too few fields": (block("this", "0.5", folder), (1, 2)),
        "no bytes": (block(), (1, 2)),
        "no umask": (block("this", "0.5", folder, "", "-rw-", *words), (1, 2)),
        "a umask that is too large": (block("this", "0.5", folder, "", str(2**40), *words), (1, 2)),
        "a negative umask": (block("this", "0.5", folder, "", "-1", *words), (1, 2)),
        "no start": (block("this", "noon", folder, "", "18", *words), (1, 2)),
        "no files": (good, ()),
        "one file": (good, (1,)),
        "three files": (good, (0, 1, 2)),
    }
    for what, (data, files) in malformed.items():
        with send(served, data, files) as connection:
            assert all_of(connection) == b"", what
    with send(served, good[:10]) as connection:  # more files with the rest
        socket.send_fds(connection, [good[10:20]], (1, 2))
        assert all_of(connection) == b""
    send(served, good[:10]).close()  # it goes away halfway
    assert client.main(recipe(tmp_path / "second.yaml")) == 0
    until(lambda: open_files() <= before)


def test_a_slow_client_is_dropped_after_a_total_time_and_others_do_not_wait(
    served, tmp_path, monkeypatch
):
    monkeypatch.setattr(pool, "REQUEST_SECONDS", 2.0)
    assert client.main(recipe(tmp_path / "first.yaml")) == 0
    before = open_files()
    connection = send(served, (1000).to_bytes(8, "little"))
    started = time.monotonic()
    assert client.main(recipe(tmp_path / "second.yaml")) == 0
    assert time.monotonic() - started < 1.5
    with suppress(BrokenPipeError):
        while time.monotonic() - started < 8:
            connection.send(b"x")
            time.sleep(0.1)
    assert time.monotonic() - started < 8
    connection.close()
    until(lambda: open_files() <= before)


def test_a_client_that_goes_on_sending_is_dropped(served, tmp_path):
    """Else its bytes would wake the pool again and again for as long as its job takes."""
    fields = ("this", "0.5", str(tmp_path), "", "18", "recipe", "--settings", SETTINGS)
    with send(served, block(*fields, "--output", "a.yaml") + b"more") as connection:
        answer = all_of(connection)
    assert answer == b"" or b"was killed" in answer
    assert client.main(recipe(tmp_path / "b.yaml")) == 0


def test_a_folder_that_has_gone_is_the_fault_of_the_job(served, tmp_path, capfd):
    """The worker and its pool live on: it must not end as if it were the pool."""
    fields = ("this", "0.5", str(tmp_path / "none"), "", "18", "recipe")
    with send(served, block(*fields)) as connection:
        (length,) = struct.unpack("<Q", connection.recv(8))
        assert connection.recv(length) == b"1"
    assert Path(served).exists()
    assert "No such file or directory" in capfd.readouterr().err
    assert client.main(recipe(tmp_path / "b.yaml")) == 0


def test_the_socket_is_private(served):
    folder = Path(served).parent
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(Path(served).stat().st_mode) == 0o600


def test_an_open_folder_is_refused(environment, tmp_path):
    (tmp_path / f"fedstage-{os.getuid()}").mkdir(mode=0o755)
    with pytest.raises(SystemExit, match="only you can enter"):
        client.socket_path()


@pytest.mark.parametrize("base", ["a file", "nothing", "long"])
def test_where_no_socket_can_be_the_next_place_is_taken(environment, monkeypatch, tmp_path, base):
    places = {"a file": "file", "nothing": "none", "long": "x" * 107}
    (tmp_path / "file").touch()
    (tmp_path / places["long"]).mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / places[base]))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert Path(client.socket_path()).parent == tmp_path / f"fedstage-{os.getuid()}"
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    monkeypatch.setenv("TMPDIR", str(tmp_path / places[base]))
    assert Path(client.socket_path()).parents[1] == Path("/tmp")


def test_a_name_that_another_user_has_taken_is_left_alone(environment, monkeypatch, tmp_path):
    name = f"fedstage-{os.getuid()}"
    (tmp_path / name).symlink_to("/nowhere")
    (tmp_path / f"{name}-1").touch()
    assert Path(client.socket_path()).parent == tmp_path / f"{name}-2"
    assert stat.S_IMODE((tmp_path / f"{name}-2").stat().st_mode) == 0o700
    monkeypatch.setattr(client, "is_own", lambda folder: False)
    with pytest.raises(SystemExit, match=r"a short path in XDG_RUNTIME_DIR; FEDSTAGE_WARM=0 runs"):
        client.socket_path()


def test_a_pool_that_does_not_start_names_its_log_and_the_way_out(
    environment, monkeypatch, tmp_path, capfd
):
    monkeypatch.setattr(client, "PYTHON", (sys.executable, "-c", "raise ImportError('torch')"))
    assert client.main(recipe(tmp_path / "recipe.yaml")) == 1
    (told,) = capfd.readouterr().err.splitlines()
    log = re.search(r"no warm worker answered \(.*; see (\S+)\); FEDSTAGE_WARM=0 runs", told)
    assert "ImportError: torch" in Path(log[1]).read_text()


def test_a_pool_that_has_no_room_to_start_says_so(environment, monkeypatch, tmp_path):
    (Path(client.socket_path() + ".log")).mkdir()
    with pytest.raises(SystemExit, match=r"Is a directory.*FEDSTAGE_WARM=0 runs without them"):
        client.start_early()


def test_another_users_pool_is_refused(served, monkeypatch):
    monkeypatch.setattr(client, "peer_uid", lambda connection: os.getuid() + 1)
    with pytest.raises(SystemExit, match="belongs to another user"):
        client.try_connect(served)


def test_another_users_client_is_refused(served, monkeypatch, tmp_path):
    monkeypatch.setattr(pool, "peer_uid", lambda connection: os.getuid() + 1)
    connection = client.connect(served)
    assert client.receive_exactly(connection, 1) is None
    connection.close()


def test_a_pool_that_is_started_early_takes_the_first_command(environment, owner, tmp_path):
    """The call returns while the pool imports; the command waits at its socket meanwhile."""
    client.start_early()
    path = client.socket_path()
    before = os.stat(path).st_ino
    client.start_early()  # there is one
    assert client.main(recipe(tmp_path / "recipe.yaml")) == 0
    assert os.stat(path).st_ino == before
    owner.kill()
    owner.wait()
    deadline = time.monotonic() + 30
    while Path(path).exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(path).exists()


def test_where_no_warm_worker_is_wanted_none_starts_early(environment, monkeypatch):
    monkeypatch.setenv("FEDSTAGE_WARM", "0")
    client.start_early()
    assert not Path(client.socket_path()).exists()


def test_where_nothing_listens_there_is_no_connection(environment):
    assert client.try_connect(client.socket_path()) is None


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (9, "was killed by SIGKILL, perhaps because memory ran out"),
        (11, "was killed by SIGSEGV"),
        (3 << 8, "ended with exit code 3"),
    ],
)
def test_the_end_of_a_worker_in_words(status, text):
    assert supervision.describe_end(status) == text


KILLED = (
    "fedstage fake: the worker was killed by SIGKILL, perhaps because memory ran out; "
    "the same command goes on"
)


def test_the_log_of_a_job_whose_worker_is_killed_has_that(served, tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(worker, "run", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    log = tmp_path / "a.log"
    for arguments in (["--log", str(log)], ["--log", str(tmp_path / "no/a.log")], ["--log"], []):
        assert client.main(["fake", *arguments]) == 1
        assert capfd.readouterr().err == f"{KILLED}\n"
    assert log.read_text() == f"{KILLED}\n"


@pytest.mark.parametrize("arguments", [["--no-warm", "recipe"], ["recipe", "--no-warm"]])
def test_without_warm_workers_the_process_becomes_the_stage(environment, monkeypatch, arguments):
    called = []
    monkeypatch.setattr(os, "execv", lambda program, words: called.append((program, words)))
    client.main(arguments)
    assert called == [
        (sys.executable, [sys.executable, "-X", "utf8", "-m", "fedstage.execution.cli", "recipe"])
    ]


@pytest.mark.parametrize(("name", "value"), [("FEDSTAGE_WARM", "0"), ("FEDSTAGE_OWNER", "")])
def test_the_environment_can_forbid_warm_workers(environment, monkeypatch, name, value):
    called = []
    monkeypatch.setattr(os, "execv", lambda program, words: called.append(words))
    monkeypatch.setenv(name, value)
    client.main(["recipe"])
    assert len(called) == 1


@pytest.fixture
def umask():
    """A function that sets the permissions that new files do not get; they are put back."""
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


@pytest.fixture
def outputs(tmp_path, umask):
    """Two files for a worker's output; the test's own output and folder are put back."""
    saved = os.dup(1), os.dup(2), Path.cwd()
    files = [os.open(tmp_path / name, os.O_RDWR | os.O_CREAT) for name in ("out", "err")]
    yield files
    os.dup2(saved[0], 1)
    os.dup2(saved[1], 2)
    os.chdir(saved[2])
    for descriptor in (*saved[:2], *files):
        os.close(descriptor)


def test_a_worker_runs_in_the_clients_folder(outputs, tmp_path, monkeypatch):
    monkeypatch.setenv("FEDSTAGE_DATA", "before")
    payload = "\0".join(["this", "0.5", str(tmp_path), "/data", "63", *recipe("recipe.yaml")])
    request = worker.parse_request(payload.encode())
    assert request.started == 0.5
    assert worker.run(request, *outputs) == 0
    assert os.environ["FEDSTAGE_DATA"] == "/data"
    assert stat.S_IMODE((tmp_path / "recipe.yaml").stat().st_mode) == 0o600


@pytest.mark.parametrize("mask", [0o077, 0o027, 0o002])
def test_files_have_the_permissions_of_the_client(served, tmp_path, umask, mask):
    """Not those of the shell that the pool was started in."""
    umask(0o022)
    assert client.main(recipe(tmp_path / "first.yaml")) == 0
    umask(mask)
    assert client.main(recipe(tmp_path / "second.yaml")) == 0
    modes = [
        stat.S_IMODE((tmp_path / f"{name}.yaml").stat().st_mode) for name in ("first", "second")
    ]
    assert modes == [0o644, 0o666 & ~mask]


def test_a_bug_in_a_stage_is_the_jobs_fault(outputs, tmp_path, monkeypatch):
    def broken(arguments, started):
        raise RuntimeError("broken")

    monkeypatch.setattr(worker.cli, "main", broken)
    monkeypatch.setenv("FEDSTAGE_DATA", "before")  # so that later tests have theirs again
    payload = "\0".join(["this", "0", str(tmp_path), "", "18", "recipe"])
    request = worker.parse_request(payload.encode())
    monkeypatch.setattr(sys, "stderr", os.fdopen(os.dup(outputs[1]), "w"))
    assert worker.run(request, *outputs) == 1
    assert "RuntimeError: broken" in (tmp_path / "err").read_text()
    assert "FEDSTAGE_DATA" not in os.environ


def test_copies_of_the_clients_output_end_with_the_job(tmp_path, umask, monkeypatch):
    """As an engine in a library keeps them: who reads the client's pipe would wait for it."""
    kept = []

    def leaky(arguments, started):
        kept.extend(map(os.dup, (1, 2)))
        return 0

    monkeypatch.setattr(worker.cli, "main", leaky)
    monkeypatch.setenv("FEDSTAGE_DATA", "before")
    saved, folder = (os.dup(1), os.dup(2)), Path.cwd()
    ends, outputs = zip(os.pipe(), os.pipe(), strict=True)
    request = worker.parse_request("\0".join(["this", "0", str(tmp_path), "", "18"]).encode())
    try:
        worker.run(request, *outputs)
    finally:
        os.dup2(saved[0], 1)
        os.dup2(saved[1], 2)
        os.chdir(folder)
    for end in ends:
        os.set_blocking(end, False)
        while os.read(end, 1024):  # until the end of the stream, where nobody could still write
            pass  # whatever a library has written
    for file in (*saved, *kept, *ends, *outputs):
        os.close(file)


def test_a_workflow_prepares_its_jobs(tmp_path):
    environment = {"PATH": "/bin"}
    prepare(environment, tmp_path, Execution())
    assert environment["PATH"] == f"{tmp_path}:/bin"
    assert environment["FEDSTAGE_OWNER"] == f"{socket.gethostname()}-{os.getpid()}"
    assert Path(environment["FEDSTAGE_CLIENT"]).samefile(client.__file__)
    assert len(environment["FEDSTAGE_SOURCE"]) == 16


def test_a_workflow_inside_another_keeps_its_owner(tmp_path, owner):
    environment = {"FEDSTAGE_OWNER": f"{socket.gethostname()}-{owner.pid}"}
    prepare(environment, tmp_path, Execution())
    assert environment["FEDSTAGE_OWNER"].endswith(f"-{owner.pid}")


@pytest.mark.parametrize("foreign", ["elsewhere-1", f"{socket.gethostname()}-999999999", "x"])
def test_an_owner_that_does_not_live_here_is_replaced(tmp_path, foreign):
    environment = {"FEDSTAGE_OWNER": foreign}
    prepare(environment, tmp_path, Execution())
    assert environment["FEDSTAGE_OWNER"].endswith(f"-{os.getpid()}")


def test_a_process_that_has_ended_is_not_alive():
    child = subprocess.Popen(["true"])
    while alive(child.pid):  # it becomes a zombie, which is not alive
        time.sleep(0.01)
    child.wait()
    assert not alive(child.pid)
    assert alive(os.getpid())


def test_a_worker_that_dies_as_its_client_goes_is_buried_once(monkeypatch, tmp_path):
    """Both of its sockets are ready in the same turn of the loop."""
    child = os.fork()
    if child == 0:
        os._exit(0)
    while alive(child):
        time.sleep(0.01)
    (control, its_end), (connection, other_end) = socket.socketpair(), socket.socketpair()
    its_end.close()
    other_end.close()
    listener = socket.create_server(("localhost", 0))
    made = pool.Pool(tmp_path / "socket", listener, 0, size=1, per_gpu=1, timeout=9, source="")
    made.workers.append(pool.Worker(child, control, gpus.CPU, connection))
    for ready in (control, connection):
        made.selector.register(ready, selectors.EVENT_READ, made.workers[0])
    monkeypatch.setattr(pool, "finished", lambda one: not one.workers)
    pool.serve(made)
    assert made.workers == []
    made.selector.close()
    listener.close()
