"""The fork server: it imports what most jobs need, then forks a worker for each request of a pool.

It is a single thread that never computes, so that forking it is safe: a worker is ready within
about 10 ms with torch imported. It ends with the process that started it, and its workers with it.
"""

import ctypes
import gc
import json
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Iterable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess

from fedstage.errors import FedstageError
from fedstage.execution import jobs
from fedstage.execution.gpus import count_gpus
from fedstage.execution.imported import look_at_imports
from fedstage.execution.notes import process_age
from fedstage.plan.stages import STAGES
from fedstage.stages import find_stage
from fedstage.storage.yaml_files import load_project_plugins
from fedstage.training.freed_memory import give_back, keep_freed

_LONGEST = 2**16  # bytes of a request
_PARENT_DEATH_SIGNAL = 1  # as Linux's prctl.h numbers it


def main(requests: socket.socket) -> None:
    """Fork a worker for each request, until the process that asks has gone."""
    warm_up()
    workers: dict[ForkProcess, Connection] = {}
    while True:
        ready = wait([requests, *(worker.sentinel for worker in workers)])
        bury(workers)
        if requests in ready:
            visible, files, _, _ = socket.recv_fds(requests, _LONGEST, 1)
            if not files:
                os._exit(0)  # without waiting for workers, which end with it
            connection, others = Connection(files[0]), [requests, *workers.values()]
            given = (connection, json.loads(visible), os.getpid(), others)
            worker = ForkProcess(target=begin, args=given)
            worker.start()
            workers[worker] = connection


def warm_up() -> None:
    """Import what most jobs need; nothing here may compute in parallel, for workers are forks.

    The stages that present results import as much again; a worker imports it when needed.
    """
    began = time.time_ns() - int(process_age() * 1e9)
    as_a_worker()
    for name, stage in STAGES.items():
        if not stage.presents:
            find_stage(name)
    with suppress(FedstageError):  # which the first job says
        load_project_plugins()
    look_at_imports(began)
    gc.freeze()  # workers neither copy imported objects nor search them for garbage


def as_a_worker() -> None:
    """Configure threads and memory of PyTorch in this process and its forks."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")  # PyTorch's tensors in huge pages: faster
    keep_freed()


def bury(workers: dict[ForkProcess, Connection]) -> None:
    """Tell the pool of each worker that has ended how it did."""
    for worker in [one for one in workers if one.exitcode is not None]:
        with workers.pop(worker) as connection, suppress(OSError):
            connection.send(("ended", worker.exitcode))


def begin(
    connection: Connection,
    visible: str | None,
    server: int,
    others: Iterable[socket.socket | Connection],
) -> None:
    """Work, until the pool lets go or the fork server has ended, however it did."""
    for other in others:
        other.close()
    ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() == server:
        work(connection, visible)


def work(connection: Connection, visible: str | None) -> None:
    """Run one command after the other on the GPUs that are `visible`, until the pool lets go.

    Without a command, the GPUs are counted.
    """
    if visible is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = visible
    connection.send(("ready", os.getpid()))
    while True:
        try:
            folder, arguments, started = connection.recv()
        except EOFError:
            return
        code = run(folder, arguments, started) if arguments else count_gpus()
        connection.send(("done", code))


def run(folder: str, arguments: Sequence[str], started: float) -> int:
    """Run a stage in a folder, and return its exit code.

    Any error that would end the stage's own process with a traceback gives exit code 1.
    """
    try:
        os.chdir(folder)
        return jobs.run(*arguments[1:], started=started)
    except BaseException:  # noqa: BLE001 - whatever it is, it is the job's fault, not the worker's
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        give_back()


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
