"""The pool: imports what most jobs need, then hands the commands of clients to workers.

The pool is a single thread that never computes, so that forking it is safe: a worker is ready
within about 10 ms with torch imported. The pool ends when its owner has gone, or after
`IDLE_SECONDS` without work.

A worker sees one GPU, or none, for all its life. The settings limit how many workers share a GPU. A
job waits until there is room at a place where it may run; other jobs may overtake it meanwhile.
"""

import gc
import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from fedstage.execution.arrivals import Arrival, close_files, drop, read_request
from fedstage.execution.client import LISTENER, RETIRED, peer_uid, process_age
from fedstage.execution.environment import alive
from fedstage.execution.gpus import Place, device_of, places
from fedstage.execution.imported import look_at_imports
from fedstage.execution.supervision import (
    Job,
    Pool,
    Worker,
    answer,
    attend,
    begin,
    client_has_gone,
    end,
    end_hung,
    fork_worker,
)
from fedstage.execution.worker import Request
from fedstage.plan.stages import STAGES
from fedstage.stages import find_stage
from fedstage.storage.project_plugins import load_project_plugins
from fedstage.training.freed_memory import keep_freed

IDLE_SECONDS = 300.0
TICK_SECONDS = 0.5
REQUEST_SECONDS = 10.0  # for the whole of a client's request
DEFAULT_TIMEOUT = 24 * 3600.0


def main(path: str, listener: socket.socket) -> None:
    """Serve at `path`, where `listener` listens, until the owner has gone."""
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
        for arrival in list(pool.arriving):
            leave(pool, arrival)
            drop(arrival)
        for worker in pool.workers:
            worker.control.close()
            os.kill(worker.pid, signal.SIGKILL)
            os.waitpid(worker.pid, 0)


def warm_up() -> None:
    """Import what most jobs need; nothing here may compute in parallel, for workers are forks.

    The stages that present results import as much again; a worker imports it when needed.
    """
    began = time.time_ns() - int(process_age() * 1e9)
    as_a_worker()
    for name, stage in STAGES.items():
        if not stage.presents:
            find_stage(name)
    load_project_plugins()
    look_at_imports(began)
    gc.freeze()  # workers neither copy imported objects nor search them for garbage


def as_a_worker() -> None:
    """Configure threads and memory of PyTorch in this process and its forks."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")  # PyTorch's tensors in huge pages: faster
    keep_freed()


def serve(pool: Pool) -> None:
    """Hand out commands until there is no client left to serve."""
    pool.selector.register(pool.listener, selectors.EVENT_READ)
    while not finished(pool):
        for key, _ in pool.selector.select(TICK_SECONDS):
            if key.fileobj is pool.listener:
                accept(pool)
            elif isinstance(key.data, Arrival):
                receive(pool, key.data)
            elif key.data in pool.workers:  # not ended a moment ago
                attend(pool, key.data)
        drop_slow(pool)
        end_hung(pool)
        hand_out(pool)


def finished(pool: Pool) -> bool:
    """Whether no job is left and the owner has gone, or no job has come for a long time."""
    if pool.waiting or any(worker.client for worker in pool.workers):
        pool.last_work = time.monotonic()
        return False
    idle = time.monotonic() - pool.last_work
    return pool.retired or not alive(pool.owner) or idle > IDLE_SECONDS


def retire(pool: Pool) -> None:
    """Give up the path of the socket, once: from then on it may belong to a younger pool."""
    if not pool.retired:
        pool.retired = True
        for path in (pool.path, Path(f"{pool.path}.lock"), Path(f"{pool.path}.log")):
            path.unlink(missing_ok=True)


def accept(pool: Pool) -> None:
    """Accept a connection of the same user, whose request is then read as it comes."""
    try:
        client, _ = pool.listener.accept()
    except OSError:  # the client has gone, or this process may open no more files for now
        time.sleep(TICK_SECONDS)
        return
    if peer_uid(client) != os.getuid():
        client.close()
        return
    client.setblocking(False)
    arrival = Arrival(client)
    pool.arriving.append(arrival)
    pool.selector.register(client, selectors.EVENT_READ, arrival)


def receive(pool: Pool, arrival: Arrival) -> None:
    """Read more of a request, and queue it once it is complete; drop a client that sends none."""
    try:
        request = read_request(arrival)
    except BlockingIOError:
        return
    except (OSError, ValueError):
        leave(pool, arrival)
        drop(arrival)
        return
    if request is not None:
        leave(pool, arrival)
        arrival.client.setblocking(True)
        queue(pool, arrival, request)


def leave(pool: Pool, arrival: Arrival) -> None:
    """Stop reading an arrival."""
    pool.arriving.remove(arrival)
    pool.selector.unregister(arrival.client)


def drop_slow(pool: Pool) -> None:
    """Drop the clients whose requests were not complete in time."""
    for arrival in list(pool.arriving):
        if time.monotonic() - arrival.since > REQUEST_SECONDS:
            leave(pool, arrival)
            drop(arrival)


def queue(pool: Pool, arrival: Arrival, request: Request) -> None:
    """Let a request wait for a worker; a request for another source retires this pool."""
    if request.source != pool.source:
        retire(pool)
        close_files(arrival.files)
        answer(arrival.client, RETIRED)
        return
    device = device_of(Path(request.folder), request.arguments)
    where = places(device, () if device == "cpu" else pool.gpus)
    stage = "".join(request.arguments[:1])
    pool.waiting.append(Job(arrival.client, arrival.payload, arrival.files, stage, where))


def hand_out(pool: Pool) -> None:
    """Give waiting jobs to workers, first come first served, as far as there is room."""
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

    If there are several GPUs, the one with the fewest busy workers is taken.
    """
    for place in sorted(places, key=lambda place: busy(pool, place.gpu)):
        here = [worker for worker in pool.workers if worker.place.gpu == place.gpu]
        idle = [worker for worker in here if worker.client is None]
        ready = next((worker for worker in idle if worker.place == place), None)
        if ready is not None:
            return ready
        full = len(here) >= (pool.size if place.gpu is None else pool.per_gpu)
        if full and idle:  # idle on this GPU, but it sees other GPUs than the job needs
            end(pool, idle[0])
        if idle or not full:
            return fork_worker(pool, place)
    return None


def busy(pool: Pool, gpu: str | None) -> int:
    """Return how many workers compute on a GPU."""
    return sum(worker.place.gpu == gpu and worker.client is not None for worker in pool.workers)


if __name__ == "__main__":
    main(sys.argv[1], socket.socket(fileno=LISTENER))
