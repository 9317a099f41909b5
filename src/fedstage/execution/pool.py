"""The pool: workers that have imported torch and the stages, and run one stage after the other.

A worker sees one GPU, or none, for all its life. The settings limit how many workers share a GPU. A
job waits until there is room at a place where it may run. A worker that dies fails its own job
only, and all workers end with the pool's process.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from multiprocessing.connection import Connection, wait
from threading import Condition

from fedstage.errors import FedstageError
from fedstage.execution.gpus import Place, device_of, named_gpus, places
from fedstage.settings.config_file import Execution

PYTHON = (sys.executable, "-X", "utf8", "-m")  # in any locale, since names may have any letters
_DAY = 24 * 3600.0
_ANSWER = 60.0  # seconds for CUDA to start, which takes some with many GPUs
_ASKED_FOR_GPUS = Place(None, None)


class ForkServer:
    """The process that forks workers; see `fedstage.execution.fork_server`.

    It has a session of its own, so that Ctrl-C at a terminal does not reach it.
    """

    def __init__(self) -> None:
        open_standard_files()
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = [*PYTHON, "fedstage.execution.fork_server", str(theirs.fileno())]
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                # Without one, snakemake may have opened a file of its own in its place.
                stdout=None if sys.stdout else subprocess.DEVNULL,
                stderr=None if sys.stderr else subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )

    @property
    def alive(self) -> bool:
        """Whether it still runs and listens: it closes its socket a moment before it has ended."""
        return self._process.poll() is None and not wait([self._requests], 0)

    def fork(self, visible: str | None) -> Connection:
        """Return the connection to a new worker with this CUDA_VISIBLE_DEVICES."""
        ours, theirs = socket.socketpair()
        with theirs, suppress(BrokenPipeError):  # it has ended: so has the connection
            request = json.dumps(visible).encode()
            socket.send_fds(self._requests, [request], [theirs.fileno()])
        return Connection(ours.detach())

    def stop(self) -> None:
        """End it, and all of its workers."""
        self._process.kill()
        self._process.wait()
        self._requests.close()


class Worker:
    """A worker, where it runs, and whether it has a job."""

    def __init__(self, server: ForkServer, place: Place) -> None:
        self.place, self.busy = place, True
        self._connection = server.fork(place.visible)
        self._pid: int | None = None

    @property
    def idle(self) -> bool:
        """Whether it is waiting for a job, and has not ended meanwhile."""
        return not self.busy and not self._connection.poll()

    def do(self, arguments: Sequence[str], started: float, seconds: float) -> int:
        """Run a stage command, and return its exit code.

        Raises
        ------
        FedstageError
            If the worker ends before it has, or takes more than so many seconds.
        """
        try:
            if self._pid is None:
                self._pid = self._answer()
            self._connection.send((os.getcwd(), arguments, started))
            if not self._connection.poll(seconds):
                raise FedstageError(f"hung for {seconds:.0f} s (execution.timeout)")
            return self._answer()
        except (EOFError, OSError):
            raise FedstageError("the workers were ended; the same command goes on") from None

    def end(self) -> None:
        """Kill it, and wait until it has gone, with its memory on a GPU."""
        with self._connection, suppress(EOFError, OSError):
            if self._pid is not None:
                os.kill(self._pid, signal.SIGKILL)
                while self._connection.recv():
                    pass

    def _answer(self) -> int:
        """Return the number that the worker sends, or raise FedstageError if it has ended."""
        what, number = self._connection.recv()
        if what != "ended":
            return int(number)
        self._pid = None
        how = f"ended with exit code {number}"
        if number < 0:
            hint = ", perhaps because memory ran out" if -number == signal.SIGKILL else ""
            how = f"was killed by {signal.Signals(-number).name}{hint}"
        raise FedstageError(f"the worker {how}; the same command goes on")


class Pool:
    """The workers of this process; several threads may run stages at a time.

    Parameters
    ----------
    execution : Execution
        How many workers there may be, and how long a stage may take.
    """

    def __init__(self, execution: Execution) -> None:
        self._size = execution.workers or len(os.sched_getaffinity(0))
        self._per_gpu = execution.workers_per_gpu
        self._timeout = float(execution.timeout or _DAY)
        self._workers: list[Worker] = []
        self._server: ForkServer | None = None
        self._room = Condition()
        self._stopped = False

    def start(self) -> ForkServer:
        """Start the fork server, unless it runs, and return it while it imports."""
        with self._room:
            if self._stopped:
                raise FedstageError("the run was stopped")
            if self._server is None or not self._server.alive:
                self._server = ForkServer()
            return self._server

    def run(self, arguments: Sequence[str]) -> int:
        """Run a stage command in a worker, once there is room; return its exit code.

        Raises
        ------
        FedstageError
            If the worker ends before it has, or takes longer than a stage may.
        """
        started, device = time.perf_counter(), device_of(arguments)
        where = places(device, () if device == "cpu" else self._gpus)
        worker, code = self._take(where), None
        try:
            code = worker.do(arguments, started, self._timeout)
        finally:
            # A failed job may have left memory allocated on the GPU, or a broken context, or have
            # imported source that has changed.
            self._give_back(worker, again=code == 0)
        return code

    def stop(self) -> None:
        """End all workers; jobs that run or wait end with an error."""
        with self._room:
            self._stopped = True
            if self._server is not None:
                self._server.stop()
            self._room.notify_all()

    @cached_property
    def _gpus(self) -> Sequence[str]:
        """The GPUs, which are counted when the first job comes that may take one.

        If CUDA kills the worker that counts them, or hangs, there is one: the worker that gets it
        fails in the same way, and its job reports the error.
        """
        named = os.environ.get("CUDA_VISIBLE_DEVICES")
        if named is not None:
            return named_gpus(named)
        worker = self._new(_ASKED_FOR_GPUS)
        try:
            count = worker.do((), 0.0, _ANSWER)
        except FedstageError:
            count = 1
        finally:
            worker.end()
        return tuple(map(str, range(count)))

    def _take(self, where: Sequence[Place]) -> Worker:
        """Return a worker at one of the places, once there is room."""
        with self._room:
            while (worker := self._find(where)) is None:
                self._room.wait()
            worker.busy = True
            return worker

    def _find(self, where: Sequence[Place]) -> Worker | None:
        """Return an idle worker at one of the places, a new one if need be; None if all are busy.

        If there are several GPUs, the one with the fewest busy workers is taken.
        """
        self._workers = [worker for worker in self._workers if worker.busy or worker.idle]
        for place in sorted(where, key=self._busy):
            here = [worker for worker in self._workers if worker.place.gpu == place.gpu]
            idle = [worker for worker in here if not worker.busy]
            ready = [worker for worker in idle if worker.place == place]
            if ready:
                return ready[-1]
            full = len(here) >= (self._size if place.gpu is None else self._per_gpu)
            if full and idle:  # idle on this GPU, but it sees other GPUs than the job needs
                self._workers.remove(idle[0])
                idle[0].end()
            if idle or not full:
                self._workers.append(self._new(place))
                return self._workers[-1]
        return None

    def _busy(self, place: Place) -> int:
        """Return how many workers compute on a place's GPU."""
        return sum(worker.busy and worker.place.gpu == place.gpu for worker in self._workers)

    def _new(self, place: Place) -> Worker:
        return Worker(self.start(), place)

    def _give_back(self, worker: Worker, again: bool) -> None:
        if not again:
            worker.end()
        with self._room:
            worker.busy = False
            if not again:
                self._workers.remove(worker)
            self._room.notify_all()


def open_standard_files() -> None:
    """Open files 0, 1 and 2 if they are closed, or a socket would become standard output."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number
