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
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection

from fedstage.errors import FedstageError
from fedstage.execution import jobs
from fedstage.execution.gpus import count_gpus
from fedstage.execution.imported import look_at_imports
from fedstage.execution.notes import process_age
from fedstage.plan.stages import RESULTS, STAGES
from fedstage.stages import find_stage
from fedstage.storage.yaml_files import load_project_plugins
from fedstage.training.freed_memory import give_back, keep_freed

_LONGEST = 2**16  # bytes of a request
_PARENT_DEATH_SIGNAL = 1  # as Linux's prctl.h numbers it


def main(requests: socket.socket) -> None:
    """Fork a worker for each request, until the process that asks has gone."""
    warm_up()
    workers: dict[int, Connection] = {}
    signal.signal(signal.SIGCHLD, lambda *_: bury(workers))
    while True:
        visible, files, _, _ = socket.recv_fds(requests, _LONGEST, 1)
        if not files:
            return
        connection, server = Connection(files[0]), os.getpid()
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])  # until its number is noted
        pid = os.fork()
        if pid == 0:
            try:
                end_with(server)
                requests.close()
                for other in workers.values():
                    other.close()
                work(connection, json.loads(visible))
            finally:  # after any error, since this is not another fork server
                os._exit(1)
        workers[pid] = connection
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])


def warm_up() -> None:
    """Import what most jobs need; nothing here may compute in parallel, for workers are forks.

    The stages that present results import as much again; a worker imports it when needed.
    """
    began = time.time_ns() - int(process_age() * 1e9)
    as_a_worker()
    for name, stage in STAGES.items():
        if stage not in RESULTS:
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


def bury(workers: dict[int, Connection]) -> None:
    """Tell the pool of each worker that has ended how it did."""
    for pid in list(workers):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            with workers.pop(pid) as connection, suppress(OSError):
                connection.send(("ended", os.waitstatus_to_exitcode(status)))


def end_with(server: int) -> None:
    """Let this worker be killed as soon as the fork server has ended, however it did."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
    ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != server:
        os._exit(1)


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
