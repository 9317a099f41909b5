"""The GPUs of a machine, and the ones on which a job may run.

Only workers call CUDA: a process that has called it cannot fork workers that use it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from fedstage.errors import FedstageError
from fedstage.plan.graph import never
from fedstage.plan.stages import STAGES

NAME = re.compile(r"\d+|(GPU|MIG)-.+")  # what CUDA_VISIBLE_DEVICES may hold


@dataclass(frozen=True)
class Place:
    """Where a worker runs, all its life."""

    gpu: str | None  # the GPU that it takes a share of; None on the CPU
    visible: str | None  # its CUDA_VISIBLE_DEVICES; None leaves it as it is


CPU = Place(None, "")


def places(device: str, gpus: Sequence[str]) -> list[Place]:
    """Return the places where a job with this `numerics.device` may run.

    A worker sees its own GPU only, which is then number 0. A job that names a number sees all GPUs,
    so that the number means the same as without a pool; the stage refuses one that does not exist.
    On a machine without GPUs, the stage takes the CPU or refuses.
    """
    if device == "cpu" or not gpus:
        return [CPU]
    number = number_of(device)
    if number is None:
        return [Place(gpu, gpu) for gpu in gpus]
    return [Place(gpus[min(number, len(gpus) - 1)], ",".join(gpus))]


def number_of(device: str) -> int | None:
    """Return the number of the GPU that a `numerics.device` names, if it names one."""
    number = re.fullmatch(r"cuda:(\d+)", device)
    return None if number is None else int(number[1])


def device_of(folder: Path, arguments: Sequence[str]) -> str:
    """Return the `numerics.device` of a stage command in a folder; ``cpu`` if it has none.

    A recipe that cannot be read also gives ``cpu``: the stage itself raises the error.
    """
    stage = STAGES.get(arguments[1]) if len(arguments) > 2 else None
    if stage is None or stage.on_device is never:
        return "cpu"
    recipe = arguments[2]
    if not (folder / recipe).is_file():  # reading a pipe would block
        return "cpu"
    from fedstage.settings.numerics import Numerics
    from fedstage.storage.yaml_files import load_yaml

    try:
        content = load_yaml(folder / recipe)
    except (FedstageError, OSError):
        return "cpu"
    match content:
        case {"settings": {"aggregation": {"batch_norm": "re_estimate"}}}:
            pass  # the one kind of aggregation that computes with the model
        case _ if stage.name == "aggregation":
            return "cpu"
    match content:
        case {"settings": {"numerics": {"device": str(device)}}}:
            return device
    return Numerics().device


def named_gpus(named: str) -> tuple[str, ...]:
    """Return the GPUs that CUDA sees, as numbers or names such as GPU-...

    `named` is CUDA_VISIBLE_DEVICES, as the user or SLURM has set it.
    """
    # CUDA stops at the first word that is no name, and takes no GPU at all if a name repeats.
    names = tuple(takewhile(NAME.fullmatch, (name.strip() for name in named.split(","))))
    return names if len(set(names)) == len(names) else ()


def count_gpus() -> int:
    """Return how many GPUs CUDA can use."""
    import torch  # slow to import, and needed in workers only

    return torch.cuda.device_count() if torch.cuda.is_available() else 0
