"""The workers of a pool and their lives: forking, watching and ending them.

A worker that dies fails its own job only; a client that goes away, such as one stopped by Ctrl-C,
takes the worker with it.
"""

import array
import os
import selectors
import signal
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from fedstage.execution.arrivals import Arrival, close_files, drop
from fedstage.execution.client import LENGTH
from fedstage.execution.environment import alive
from fedstage.execution.gpus import Place, visible_gpus
from fedstage.execution.worker import work

GOES_ON = "the same command goes on"


@dataclass
class Job:
    """A waiting client, its request, and where the job may run."""

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
    """The state of a pool: its settings, its workers, and the waiting and arriving jobs."""

    path: Path
    listener: socket.socket
    owner: int
    size: int
    per_gpu: int
    timeout: float
    source: str
    workers: list[Worker] = field(default_factory=list)
    waiting: list[Job] = field(default_factory=list)
    arriving: list[Arrival] = field(default_factory=list)
    selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)
    last_work: float = field(default_factory=time.monotonic)
    retired: bool = False

    @cached_property
    def gpus(self) -> tuple[str, ...]:
        """The GPUs, which are looked for when the first job comes that may take one."""
        return visible_gpus(os.environ.get("CUDA_VISIBLE_DEVICES"))


def fork_worker(pool: Pool, place: Place) -> Worker:
    """Fork a worker, which runs commands from its control socket until that closes."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            ours.close()
            leave_pool(pool)
            os.environ["CUDA_VISIBLE_DEVICES"] = place.visible
            work(theirs)
            code = 0
        finally:  # after any error, since this is not another pool, which would end all workers
            os._exit(code)
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
    for arrival in pool.arriving:
        drop(arrival)
    for worker in pool.workers:
        worker.control.close()
        if worker.client is not None:
            worker.client.close()


def begin(pool: Pool, worker: Worker, job: Job) -> None:
    """Pass a job's request to a worker, with the client's standard output."""
    worker.client, worker.stage, worker.since = job.client, job.stage, time.monotonic()
    pool.selector.register(job.client, selectors.EVENT_READ, worker)
    header = len(job.payload).to_bytes(LENGTH, "little")
    rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", job.files))
    with suppress(OSError):  # the worker has just died, which `attend` will notice
        worker.control.sendmsg([header], [rights])
        worker.control.sendall(job.payload)


def attend(pool: Pool, worker: Worker) -> None:
    """Act on a worker that has finished or died, or whose client has gone."""
    try:
        report = worker.control.recv(LENGTH, socket.MSG_DONTWAIT)
    except OSError:
        report = b""
    if len(report) == LENGTH:
        code = int.from_bytes(report, "little")
        dismiss_client(pool, worker, str(code).encode())
        if code:
            # A failed job may have left memory allocated on the GPU, or a broken context, or have
            # imported source that has changed.
            end(pool, worker)
    elif not alive(worker.pid):
        bury(pool, worker)
    elif worker.client is not None and client_has_gone(worker.client):
        end(pool, worker)


def client_has_gone(client: socket.socket) -> bool:
    """Whether the other end is closed, or sends more, which no client does after its request."""
    try:
        client.recv(1, socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def end_hung(pool: Pool) -> None:
    """Kill workers that exceed the time-out, with a message to their clients."""
    for worker in list(pool.workers):
        if worker.client is not None and time.monotonic() - worker.since > pool.timeout:
            dismiss_failed(pool, worker, f"hung for {pool.timeout:.0f} s (execution.timeout)")
            end(pool, worker)


def end(pool: Pool, worker: Worker) -> None:
    """Kill a worker, and forget it."""
    os.kill(worker.pid, signal.SIGKILL)
    bury(pool, worker)


def bury(pool: Pool, worker: Worker) -> None:
    """Tell the client how its worker ended, and forget the worker."""
    _, status = os.waitpid(worker.pid, 0)
    dismiss_failed(pool, worker, f"the worker {describe_end(status)}; {GOES_ON}")
    pool.selector.unregister(worker.control)
    worker.control.close()
    pool.workers.remove(worker)


def describe_end(status: int) -> str:
    """Describe how a process ended."""
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        hint = ", perhaps because memory ran out" if name == "SIGKILL" else ""
        return f"was killed by {name}{hint}"
    return f"ended with exit code {os.waitstatus_to_exitcode(status)}"


def dismiss_failed(pool: Pool, worker: Worker, message: str) -> None:
    """Answer a worker's client with exit code 1 and a message, and close its connection."""
    dismiss_client(pool, worker, f"1\0fedstage {worker.stage}: {message}".encode())


def dismiss_client(pool: Pool, worker: Worker, block: bytes) -> None:
    """Answer a worker's client and close its connection."""
    if worker.client is not None:
        pool.selector.unregister(worker.client)
        answer(worker.client, block)
        worker.client = None


def answer(client: socket.socket, block: bytes) -> None:
    """Send the last block of a connection; a client that has gone does not need it."""
    with suppress(OSError):
        client.sendall(len(block).to_bytes(LENGTH, "little") + block)
    client.close()
