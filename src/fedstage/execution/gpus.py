"""The GPUs of a machine, and at which of them a job may run.

CUDA is asked in a child only: a process that has asked it cannot fork workers that use it.
"""

import os
import re
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

from fedstage.errors import FedstageError
from fedstage.stages import ON_DEVICE

ANSWER_SECONDS = 60.0  # for CUDA to start, which takes seconds where there are many GPUs
NAME = re.compile(r"\d+|(GPU|MIG)-.+")  # what CUDA_VISIBLE_DEVICES may hold


@dataclass(frozen=True)
class Place:
    """Where a worker runs, all its life.

    Attributes
    ----------
    gpu : str or None
        The GPU on whose workers it counts; None for one that computes on the CPU.
    visible : str
        Its CUDA_VISIBLE_DEVICES.
    """

    gpu: str | None
    visible: str


CPU = Place(None, "")


def places(device: str, gpus: Sequence[str]) -> list[Place]:
    """Return where a job may run whose `numerics.device` is given.

    A worker sees its own GPU only, which is then number 0. A job that names a number sees all GPUs,
    so that the number means what it means without a pool; one that is not there is refused by the
    stage. Where there are no GPUs, the stage takes the CPU or refuses.
    """
    if device == "cpu" or not gpus:
        return [CPU]
    number = re.fullmatch(r"cuda:(\d+)", device)
    if number is None:
        return [Place(gpu, gpu) for gpu in gpus]
    return [Place(gpus[min(int(number[1]), len(gpus) - 1)], ",".join(gpus))]


def device_of(folder: Path, arguments: Sequence[str]) -> str:
    """Return the `numerics.device` of a stage command, given in a folder; ``cpu`` if it has none.

    A stage whose line cannot be read says so itself, wherever it runs.
    """
    line = _line_of(arguments)
    if line is None or arguments[0] not in ON_DEVICE:
        return "cpu"
    from fedstage.settings.numerics import Numerics  # slow to import: the pool listens before that
    from fedstage.storage.yaml_files import load_yaml

    try:
        content = load_yaml(folder / line)
    except (FedstageError, OSError):
        return "cpu"
    if arguments[0] == "aggregation" and not _re_estimates(content):
        return "cpu"
    match content:
        case {"settings": {"numerics": {"device": str(device)}}}:
            return device
    return Numerics().device


def _re_estimates(line: dict[str, Any]) -> bool:
    """Whether an aggregation of the line computes with the model, beside averaging."""
    match line:
        case {"settings": {"aggregation": {"batch_norm": "re_estimate"}}}:
            return True
    return False


def _line_of(arguments: Sequence[str]) -> str | None:
    words = iter(arguments)
    for word in words:
        option, given, value = word.partition("=")
        if option == "--line":
            return value if given else next(words, None)
    return None


def visible_gpus(named: str | None) -> tuple[str, ...]:
    """Return the names of the GPUs that CUDA sees, as CUDA_VISIBLE_DEVICES takes them.

    Parameters
    ----------
    named : str or None
        CUDA_VISIBLE_DEVICES, as the user or SLURM has set it: numbers, or names such as GPU-...;
        None if it is not set.
    """
    if named is None:
        return tuple(map(str, range(count_gpus())))
    # As CUDA reads it: nothing behind what is no name counts, and nothing at all if one repeats.
    names = tuple(takewhile(NAME.fullmatch, (name.strip() for name in named.split(","))))
    return names if len(set(names)) == len(names) else ()


def count_gpus() -> int:
    """Return how many GPUs CUDA can use, as a child sees it that ends afterwards.

    Where CUDA kills the child, or hangs, there is one: the worker that gets it will meet the same,
    and its job is told.
    """
    import torch  # slow to import: the pool listens before that

    pid = os.fork()
    if pid == 0:
        count = 1
        try:
            count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        finally:
            os._exit(count)
    code = _exit_code(pid)
    return 1 if code is None or code < 0 else code


def _exit_code(pid: int) -> int | None:
    """Wait for a child's end, not for ever; return its exit code."""
    end = time.monotonic() + ANSWER_SECONDS
    while time.monotonic() < end:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(pid, signal.SIGKILL)
    return None
