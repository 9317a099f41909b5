"""The pool: imports everything once, forks workers, hands them commands and watches over them.

It is a single thread that never computes, so that forking it is safe: a worker is ready in some
10 ms with torch imported. A worker that dies fails its own job only; a client that goes away, such
as one stopped by Ctrl-C, takes the worker with it. The pool ends when its owner has gone, or after
`IDLE_SECONDS` without work.

A worker sees one GPU, or none, for all its life. So many share a GPU as the settings say; a job
waits until there is room at a place where it may run, and others may overtake it meanwhile.
"""

import array
import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path

from fedstage.execution import memory
from fedstage.execution.client import LENGTH, RETIRED, peer_uid, receive_exactly
from fedstage.execution.gpus import Place, device_of, places, visible_gpus
from fedstage.execution.processes import alive
from fedstage.execution.worker import Request, parse_request, run
from fedstage.stages import STAGES

IDLE_SECONDS = 300.0
TICK_SECONDS = 0.5
REQUEST_SECONDS = 10.0  # for a client to say what it wants: the pool waits for one at a time
DEFAULT_TIMEOUT = 24 * 3600.0


@dataclass
class Job:
    """A client that waits, what it has sent, and where it may run."""

    client: socket.socket
    payload: bytes
    files: list[int]
    stage: str
    places: Sequence[Place]


@dataclass
class Worker:
    """A forked process, where it runs, and the client it works for."""

    pid: int
    control: socket.socket
    place: Place
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
    per_gpu: int
    timeout: float
    source: str
    workers: list[Worker] = field(default_factory=list)
    waiting: list[Job] = field(default_factory=list)
    selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)
    last_work: float = field(default_factory=time.monotonic)
    retired: bool = False

    @cached_property
    def gpus(self) -> tuple[str, ...]:
        """The GPUs, looked for when a job comes that may take one."""
        return visible_gpus(os.environ.get("CUDA_VISIBLE_DEVICES"))


def main(path: str) -> None:
    """Serve at `path` until the owner has gone."""
    listener = listen(path)
    warm_up()
    pool = Pool(
        Path(path),
        listener,
        owner=int(os.environ["FEDSTAGE_OWNER"].rpartition("-")[2]),
        size=int(os.environ.get("FEDSTAGE_WORKERS") or len(os.sched_getaffinity(0))),
        per_gpu=int(os.environ.get("FEDSTAGE_WORKERS_PER_GPU") or 1),
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
    before = os.umask(0o177)  # private from the first moment on
    listener.bind(path)
    os.umask(before)
    listener.listen(128)
    return listener


def warm_up() -> None:
    """Import what the stages need; nothing here may compute in parallel, for workers are forks."""
    as_a_worker()
    for stage in STAGES:
        import_module(f"fedstage.stages.{stage}")


def as_a_worker() -> None:
    """Set what PyTorch's threads and memory are to be in this process and its forks."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")  # PyTorch's tensors in huge pages: faster
    memory.keep_freed()


def serve(pool: Pool) -> None:
    """Hand out commands until there is nobody left to serve."""
    pool.selector.register(pool.listener, selectors.EVENT_READ)
    while not finished(pool):
        for key, _ in pool.selector.select(TICK_SECONDS):
            if key.fileobj is pool.listener:
                accept(pool)
            elif key.data in pool.workers:  # not ended a moment ago
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
    """Take a connection of this user's, and read what it wants."""
    client, _ = pool.listener.accept()
    if peer_uid(client) != os.getuid():
        client.close()
        return
    client.settimeout(REQUEST_SECONDS)
    try:
        payload, files = receive_request(client)
        request = parse_request(payload)
    except (OSError, ValueError):
        client.close()
        return
    client.settimeout(None)
    if request.source != pool.source:
        retire(pool)
        close_files(files)
        answer(client, RETIRED)
        return
    device = device_of(Path(request.folder), request.arguments)
    where = places(device, () if device == "cpu" else pool.gpus)
    pool.waiting.append(Job(client, payload, files, "".join(request.arguments[:1]), where))


def hand_out(pool: Pool) -> None:
    """Give waiting jobs to workers, in the order in which they came as far as there is room."""
    for job in list(pool.waiting):
        gone = client_has_gone(job.client)
        worker = None if gone else find_worker(pool, job.places)
        if worker is not None:
            begin(pool, worker, job)
        elif gone:
            job.client.close()
        else:
            continue
        close_files(job.files)
        pool.waiting.remove(job)


def find_worker(pool: Pool, places: Sequence[Place]) -> Worker | None:
    """Return an idle worker at one of the places, a new one if need be; None if all are busy.

    Of several GPUs, that with the fewest busy workers is taken.
    """
    for place in sorted(places, key=lambda place: busy(pool, place.gpu)):
        here = [worker for worker in pool.workers if worker.place.gpu == place.gpu]
        idle = [worker for worker in here if worker.client is None]
        ready = next((worker for worker in idle if worker.place == place), None)
        if ready is not None:
            return ready
        full = len(here) >= (pool.size if place.gpu is None else pool.per_gpu)
        if full and idle:  # on this GPU, but what it sees is not what the job needs
            end(pool, idle[0])
        if idle or not full:
            return fork_worker(pool, place)
    return None


def busy(pool: Pool, gpu: str | None) -> int:
    """Return how many workers compute on a GPU."""
    return sum(worker.place.gpu == gpu and worker.client is not None for worker in pool.workers)


def begin(pool: Pool, worker: Worker, job: Job) -> None:
    """Pass a job's request to a worker, with the client's standard output."""
    worker.client, worker.stage, worker.since = job.client, job.stage, time.monotonic()
    pool.selector.register(job.client, selectors.EVENT_READ, worker)
    header = len(job.payload).to_bytes(LENGTH, "little")
    rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", job.files))
    with suppress(OSError):  # the worker has just died, which its control socket will tell
        worker.control.sendmsg([header], [rights])
        worker.control.sendall(job.payload)


def close_files(files: Iterable[int]) -> None:
    """Let go of a client's standard output."""
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
        if code and worker.place.gpu is not None:
            # What failed may have left memory taken on the GPU, or a context that no longer works.
            end(pool, worker)
    elif not worker_lives(worker):
        bury(pool, worker)
    elif worker.client is not None and client_has_gone(worker.client):
        end(pool, worker)


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


def end(pool: Pool, worker: Worker) -> None:
    """End a worker, and forget it."""
    os.kill(worker.pid, signal.SIGKILL)
    bury(pool, worker)


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
            text = f"fedstage {worker.stage}: hung for {pool.timeout:.0f} s (execution.timeout)"
            dismiss_client(pool, worker, b"1\0" + text.encode())
            end(pool, worker)


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


def fork_worker(pool: Pool, place: Place) -> Worker:
    """Fork a worker, which runs commands from its control socket until that closes."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        ours.close()
        leave_pool(pool)
        os.environ["CUDA_VISIBLE_DEVICES"] = place.visible
        work(theirs)
        os._exit(0)
    theirs.close()
    worker = Worker(pid, ours, place)
    pool.workers.append(worker)
    pool.selector.register(ours, selectors.EVENT_READ, worker)
    return worker


def leave_pool(pool: Pool) -> None:
    """Close, in a new worker, what belongs to the pool."""
    pool.selector.close()
    pool.listener.close()
    for job in pool.waiting:
        job.client.close()
        close_files(job.files)
    for worker in pool.workers:
        worker.control.close()
        if worker.client is not None:
            worker.client.close()


def work(control: socket.socket) -> None:
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
