"""Stages: one thin function a file, between files and the rooms below.

`fedstage.plan.stages` describes each. Its function takes keyword arguments only: the paths of its
inputs and outputs, and numbers such as round and group. It reads, calls pure functions, and writes;
who does several jobs in one returns the seconds of each.
It raises `FedstageError` if an input is missing, damaged or does not fit, a setting or option is
invalid, or training diverges. Figures are PNG or SVG, by their suffix; `runs` is a JSON file of
`fedstage.results.runs_file.ExperimentRuns`.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any

#: Seconds of the parts of a job that has several, by the file that each made.
Seconds = dict[str, float]


def find_stage(name: str) -> Callable[..., Seconds | None]:
    """Return the function of a stage; its module is imported now."""
    stage: Callable[..., Seconds | None] = getattr(import_module(f"fedstage.stages.{name}"), name)
    return stage


def call(stage: str, files: Mapping[str, str | Sequence[str]], **options: Any) -> Seconds:
    """Call a stage with files, as the job of `fedstage.plan.graph` names them, and other options.

    Returns
    -------
    dict of str to float
        The seconds of its parts, or of all of it by its `output`; empty if it has neither.
    """
    paths = {
        name: Path(value) if isinstance(value, str) else list(map(Path, value))
        for name, value in files.items()
        if value
    }
    begun = perf_counter()
    parts = find_stage(stage)(**paths, **options)
    whole = {str(files["output"]): perf_counter() - begun} if "output" in files else {}
    return parts or whole
