"""The GPUs of a machine, and the ones on which a job may run.

Only workers call CUDA: a process that has called it cannot fork workers that use it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import takewhile
from pathlib import Path

from fedstage.errors import FedstageError
from fedstage.plan.graph import Stage, never
from fedstage.plan.stages import STAGES
from fedstage.plan.training_folder import FOLDER
from fedstage.settings.numerics import Numerics
from fedstage.storage.yaml_files import read_recipe

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


def device_of(arguments: Sequence[str]) -> str:
    """Return the `numerics.device` of a stage command; ``cpu`` if it computes on none.

    A recipe that cannot be read also gives ``cpu``: the stage itself raises the error.
    """
    stage = STAGES.get(arguments[1]) if len(arguments) > 2 else None
    if stage is None or stage.on_device is never:
        return "cpu"
    folder = stage.folder if isinstance(stage, Stage) else FOLDER  # segments are of rounds
    try:
        config = _settings(Path(arguments[2]).absolute(), folder.kind)
    except FedstageError:
        return "cpu"
    numerics = getattr(config, "numerics", None) or Numerics()
    return numerics.device if stage.on_device(config) else "cpu"


#: Settings of folders do not change while jobs run.
_settings = cache(read_recipe)


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
