"""A warm worker: one stage after the other, each as its own process would run it."""

import os
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass

from fedstage.execution import cli, memory


@dataclass(frozen=True)
class Request:
    """A stage command.

    Attributes
    ----------
    source : str
        Fingerprint of the source that the client expects.
    started : float
        When the client started, on the clock of `time.perf_counter`.
    folder : str
        Working directory.
    data_folder : str
        The client's FEDSTAGE_DATA, or "".
    arguments : tuple of str
        The stage and its options.
    """

    source: str
    started: float
    folder: str
    data_folder: str
    arguments: tuple[str, ...]


def parse_request(payload: bytes) -> Request:
    """Read the block that the client sent."""
    source, started, folder, data_folder, *arguments = payload.decode().split("\0")
    return Request(source, float(started), folder, data_folder, tuple(arguments))


def run(request: Request, stdout: int, stderr: int) -> int:
    """Run a stage with the client's output, directory and data folder; return its exit code."""
    os.dup2(stdout, 1)
    os.dup2(stderr, 2)
    os.chdir(request.folder)
    if request.data_folder:
        os.environ["FEDSTAGE_DATA"] = request.data_folder
    else:
        os.environ.pop("FEDSTAGE_DATA", None)
    try:
        code = _run_stage(request.arguments, request.started)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        _release_output()
        memory.give_back()
    return code


def _run_stage(arguments: Sequence[str], started: float) -> int:
    """Run a stage; what would end a process of its own with a traceback ends in exit code 1."""
    try:
        return cli.main(arguments, started=started)
    except SystemExit as stop:  # argparse, after printing its usage
        return stop.code if isinstance(stop.code, int) else 1
    except BaseException:  # noqa: BLE001 - whatever it is, it is the job's fault, not the worker's
        traceback.print_exc()
        return 1


def _release_output() -> None:
    """Let go of the client's pipes, or their reader would wait for this worker's end."""
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    os.dup2(null, 2)
    os.close(null)
