"""A warm worker: runs one stage after the other, each as in a process of its own."""

import os
import socket
import sys
import traceback
from dataclasses import dataclass

from fedstage.execution import cli
from fedstage.execution.client import LENGTH, receive_exactly
from fedstage.training.freed_memory import give_back

ALL_BITS = 0o777  # of a umask


@dataclass(frozen=True)
class Request:
    """A stage command."""

    source: str  # fingerprint of the source that the client expects
    started: float  # when the client started, on the clock of `time.perf_counter`
    folder: str  # working directory
    data_folder: str  # the client's FEDSTAGE_DATA, or ""
    mask: int  # the client's umask: the permissions that new files do not get
    arguments: tuple[str, ...]  # the stage and its options


def receive_request(connection: socket.socket) -> tuple[bytes, list[int]]:
    """Read a block from the pool and the files passed with it; ValueError if the pool has ended."""
    header, files, _, _ = socket.recv_fds(connection, LENGTH, 2)
    if len(header) != LENGTH:
        raise ValueError("no request")
    payload = receive_exactly(connection, int.from_bytes(header, "little"))
    if payload is None:
        raise ValueError("no request")
    return payload, files


def parse_request(payload: bytes) -> Request:
    """Read the block that the client sent; raise ValueError if it is none."""
    source, started, folder, data_folder, mask, *arguments = os.fsdecode(payload).split("\0")
    if int(mask) not in range(ALL_BITS + 1):
        raise ValueError(f"umask {mask}")
    return Request(source, float(started), folder, data_folder, int(mask), tuple(arguments))


def work(control: socket.socket) -> None:
    """Run one command after the other, until the control socket closes."""
    while True:
        try:
            payload, (stdout, stderr) = receive_request(control)
        except (OSError, ValueError):
            return
        code = run(parse_request(payload), stdout, stderr)
        os.close(stdout)
        os.close(stderr)
        control.sendall(code.to_bytes(LENGTH, "little"))


def run(request: Request, stdout: int, stderr: int) -> int:
    """Run a stage with the client's output, directory, data folder and umask; return its exit code.

    Any error that would end the stage's own process with a traceback gives exit code 1.
    """
    os.dup2(stdout, 1)
    os.dup2(stderr, 2)
    if request.data_folder:
        os.environ["FEDSTAGE_DATA"] = request.data_folder
    else:
        os.environ.pop("FEDSTAGE_DATA", None)
    try:
        os.umask(request.mask)
        os.chdir(request.folder)
        return cli.main(request.arguments, started=request.started)
    except SystemExit as stop:  # argparse, after printing its usage
        return stop.code if isinstance(stop.code, int) else 1
    except BaseException:  # noqa: BLE001 - whatever it is, it is the job's fault, not the worker's
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        let_go_of(stdout, stderr)
        give_back()


def let_go_of(stdout: int, stderr: int) -> None:
    """Replace each open file that is a client's output by the null device.

    Otherwise readers of the client's pipes would keep waiting. Libraries may keep copies for the
    life of a process.
    """
    null = os.open(os.devnull, os.O_RDWR)
    outputs = {file_identity(stdout), file_identity(stderr)}
    for file in [int(name) for name in os.listdir("/dev/fd")]:
        if file_identity(file) in outputs:
            os.dup2(null, file)
    os.close(null)


def file_identity(file: int) -> tuple[int, int] | None:
    """Return device and inode of an open file, None for one that is closed."""
    try:
        status = os.fstat(file)
    except OSError:
        return None
    return status.st_dev, status.st_ino
