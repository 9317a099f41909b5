"""The pool: imports everything once, forks workers, hands them commands and watches over them.

It is a single thread that never computes, so that forking it is safe: a worker is ready in some
10 ms with torch imported. A worker that dies fails its own job only; a client that goes away, such
as one stopped by Ctrl-C, takes the worker with it. The pool ends when its owner has gone, or after
`IDLE_SECONDS` without work.
"""

import array
import os
import selectors
import signal
import socket
import sys
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

from fedstage.stages import STAGES
from fedstage.warm.client import LENGTH, RETIRED, peer_uid, receive_exactly
from fedstage.warm.processes import alive
from fedstage.warm.worker import Request, parse_request, run

IDLE_SECONDS = 300.0
TICK_SECONDS = 0.5
REQUEST_SECONDS = 10.0  # for a client to say what it wants: the pool waits for one at a time
DEFAULT_TIMEOUT = 24 * 3600.0


@dataclass
class Worker:
    """A forked process, and the client it works for."""

    pid: int
    control: socket.socket
    client: socket.socket | None = None
    stage: str = ""
    since: float = 0.0


@dataclass
class Pool:
    """What the pool's loop looks at."""

    path: Path
    listener: socket.socket
    owner: int
    size: int
    timeout: float
    source: str
    workers: list[Worker] = field(default_factory=list)
    waiting: deque[socket.socket] = field(default_factory=deque)
    selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)
    last_work: float = field(default_factory=time.monotonic)
    retired: bool = False


def main(path: str) -> None:
    """Serve at `path` until the owner has gone."""
    listener = listen(path)
    warm_up()
    pool = Pool(
        Path(path),
        listener,
        owner=int(os.environ["FEDSTAGE_OWNER"].rpartition("-")[2]),
        size=int(os.environ.get("FEDSTAGE_WORKERS") or len(os.sched_getaffinity(0))),
        timeout=float(os.environ.get("FEDSTAGE_TIMEOUT") or DEFAULT_TIMEOUT),
        source=os.environ.get("FEDSTAGE_SOURCE", ""),
    )
    try:
        serve(pool)
    finally:
        retire(pool)
        for worker in pool.workers:
            stop(worker)


def listen(path: str) -> socket.socket:
    """Listen before importing anything slow: clients may queue meanwhile."""
    Path(path).unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path)
    os.chmod(path, 0o600)
    listener.listen(128)
    return listener


def warm_up() -> None:
    """Import what the stages need; nothing here may compute in parallel, for workers are forks."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for stage in STAGES:
        import_module(f"fedstage.stages.{stage}")


def serve(pool: Pool) -> None:
    """Hand out commands until there is nobody left to serve."""
    pool.selector.register(pool.listener, selectors.EVENT_READ)
    while not finished(pool):
        for key, _ in pool.selector.select(TICK_SECONDS):
            if key.fileobj is pool.listener:
                accept(pool)
            else:
                attend(pool, key.data)
        end_hung(pool)
        hand_out(pool)


def finished(pool: Pool) -> bool:
    """Whether the owner has gone, or nothing came for long, and no job is left."""
    if pool.waiting or any(worker.client for worker in pool.workers):
        pool.last_work = time.monotonic()
        return False
    idle = time.monotonic() - pool.last_work
    return pool.retired or not alive(pool.owner) or idle > IDLE_SECONDS


def retire(pool: Pool) -> None:
    """Give up the socket's place, once: from then on it may be a younger pool's."""
    if not pool.retired:
        pool.retired = True
        for path in (pool.path, Path(f"{pool.path}.lock"), Path(f"{pool.path}.log")):
            path.unlink(missing_ok=True)


def accept(pool: Pool) -> None:
    """Take a connection of this user's."""
    client, _ = pool.listener.accept()
    if peer_uid(client) != os.getuid():
        client.close()
        return
    pool.waiting.append(client)


def hand_out(pool: Pool) -> None:
    """Give waiting clients to idle workers, forking new ones up to the pool's size."""
    while pool.waiting:
        worker = next((worker for worker in pool.workers if worker.client is None), None)
        if worker is None:
            if len(pool.workers) >= pool.size:
                return
            worker = fork_worker(pool)
        begin(pool, worker, pool.waiting.popleft())


def begin(pool: Pool, worker: Worker, client: socket.socket) -> None:
    """Read a client's request and pass it to a worker, with the client's standard output."""
    client.settimeout(REQUEST_SECONDS)
    try:
        payload, files = receive_request(client)
    except (OSError, ValueError):
        client.close()
        return
    client.settimeout(None)
    request = parse_request(payload)
    if request.source != pool.source:
        retire(pool)
        answer(client, RETIRED)
        return
    worker.client, worker.since = client, time.monotonic()
    worker.stage = " ".join(request.arguments[:1])
    pool.selector.register(client, selectors.EVENT_READ, worker)
    header = len(payload).to_bytes(LENGTH, "little")
    rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))
    worker.control.sendmsg([header], [rights])
    worker.control.sendall(payload)
    for file in files:
        os.close(file)


def receive_request(connection: socket.socket) -> tuple[bytes, list[int]]:
    """Read a block and the files passed beside it."""
    header, files, _, _ = socket.recv_fds(connection, LENGTH, 2)
    if len(header) != LENGTH:
        raise ValueError("no request")
    payload = receive_exactly(connection, int.from_bytes(header, "little"))
    if payload is None:
        raise ValueError("no request")
    return payload, files


def attend(pool: Pool, worker: Worker) -> None:
    """Act on a worker that has finished or died, or whose client has gone."""
    code = poll_worker(worker)
    if code is not None:
        dismiss_client(pool, worker, str(code).encode())
    elif not worker_lives(worker):
        bury(pool, worker)
    elif worker.client is not None and client_has_gone(worker.client):
        os.kill(worker.pid, signal.SIGKILL)
        bury(pool, worker)


def poll_worker(worker: Worker) -> int | None:
    """Return the exit code that a worker reports, or None."""
    try:
        data = worker.control.recv(LENGTH, socket.MSG_DONTWAIT)
    except BlockingIOError:
        return None
    except OSError:
        return None
    return int.from_bytes(data, "little") if len(data) == LENGTH else None


def worker_lives(worker: Worker) -> bool:
    """Whether a worker has not ended."""
    return alive(worker.pid)


def client_has_gone(client: socket.socket) -> bool:
    """Whether the other end is closed: a client sends nothing after its request."""
    try:
        return client.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def bury(pool: Pool, worker: Worker) -> None:
    """Tell the client how its worker ended, and forget the worker."""
    _, status = os.waitpid(worker.pid, 0)
    text = f"fedstage {worker.stage}: the worker {describe_end(status)}"
    dismiss_client(pool, worker, b"1\0" + text.encode())
    pool.selector.unregister(worker.control)
    worker.control.close()
    pool.workers.remove(worker)


def describe_end(status: int) -> str:
    """Say in words how a process ended."""
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        hint = ", perhaps because memory ran out" if name == "SIGKILL" else ""
        return f"was killed by {name}{hint}"
    return f"ended with exit code {os.waitstatus_to_exitcode(status)}"


def end_hung(pool: Pool) -> None:
    """Kill workers that exceed the time-out; their clients are told."""
    for worker in list(pool.workers):
        if worker.client is not None and time.monotonic() - worker.since > pool.timeout:
            text = f"fedstage {worker.stage}: hung for {pool.timeout:.0f} s (FEDSTAGE_TIMEOUT)"
            dismiss_client(pool, worker, b"1\0" + text.encode())
            os.kill(worker.pid, signal.SIGKILL)
            bury(pool, worker)


def dismiss_client(pool: Pool, worker: Worker, block: bytes) -> None:
    """Answer a worker's client and let it go."""
    if worker.client is None:
        return
    pool.selector.unregister(worker.client)
    answer(worker.client, block)
    worker.client = None


def answer(client: socket.socket, block: bytes) -> None:
    """Send the last block of a connection; a client that has gone does not need it."""
    with suppress(OSError):
        client.sendall(len(block).to_bytes(LENGTH, "little") + block)
    client.close()


def fork_worker(pool: Pool) -> Worker:
    """Fork a worker, which runs commands from its control socket until that closes."""
    ours, theirs = socket.socketpair()
    number = len(pool.workers)
    pid = os.fork()
    if pid == 0:
        ours.close()
        leave_pool(pool)
        work(theirs, number)
        os._exit(0)
    theirs.close()
    worker = Worker(pid, ours)
    pool.workers.append(worker)
    pool.selector.register(ours, selectors.EVENT_READ, worker)
    return worker


def leave_pool(pool: Pool) -> None:
    """Close, in a new worker, what belongs to the pool."""
    pool.selector.close()
    pool.listener.close()
    for client in pool.waiting:
        client.close()
    for worker in pool.workers:
        worker.control.close()
        if worker.client is not None:
            worker.client.close()


def work(control: socket.socket, number: int) -> None:
    """Run one command after the other."""
    while True:
        try:
            payload, (stdout, stderr) = receive_request(control)
        except (OSError, ValueError):
            return
        request: Request = parse_request(payload)
        code = run(request, stdout, stderr)
        os.close(stdout)
        os.close(stderr)
        control.sendall(code.to_bytes(LENGTH, "little"))


def stop(worker: Worker) -> None:
    """End a worker."""
    worker.control.close()
    os.kill(worker.pid, signal.SIGKILL)
    os.waitpid(worker.pid, 0)


if __name__ == "__main__":
    main(sys.argv[1])
