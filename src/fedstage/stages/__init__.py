"""Stages: thin functions, which connect files with the packages below.

`fedstage.plan.stages` lists them all. The function of a stage of the graph takes a recipe, `read`
(the files that it reads, whose class the graph declares), the values of its place, such as round
and group, and the files that it makes: by the names that the graph declares, or all in one mapping,
`made`. The function of a stage of results takes the files that `fedstage.plan.results` names.
It reads, calls pure functions, and writes; one that does several jobs returns the seconds of each.

It raises `FedstageError` if an input is missing, damaged or does not fit, a setting is invalid, or
training diverges. Figures are PNG or SVG, by their suffix; `runs` is a JSON file of
`fedstage.experiments.runs_file.ExperimentRuns`.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any

from fedstage.plan.graph import Job
from fedstage.plan.stages import module_of
from fedstage.randomness import seed_globals

#: Seconds of the parts of a job with several parts, by the file that each part made.
Seconds = dict[str, float]
#: The files that a stage makes, by the names that `fedstage.plan` declares, or None.
Made = Mapping[str, Any]


def find_stage(name: str) -> Callable[..., Seconds | None]:
    """Return the function of a stage, after importing its module."""
    stage: Callable[..., Seconds | None] = getattr(import_module(module_of(name)), name)
    return stage


def run_job(job: Job, *others: Job) -> Seconds:
    """Run a job of the graph, and participants that train from the same files with it.

    Global generators are seeded by what identifies the job: its seed, its stage, and its files
    below the folder of its recipe; where participants may share a job, each seeds its own.

    Returns the seconds of each, by its main file.
    """
    begun, stage = perf_counter(), job.stage
    function = find_stage(stage.name)
    made = {name: Path(job.files[name]) if name in job.files else None for name in stage.outputs}
    read = type(job.read)(**{name: paths_of(files) for name, files in vars(job.read).items()})
    values: dict[str, Any] = {"recipe": job.config, "read": read, "made": made, **job.at}
    if stage.several:
        together = (job, *others)
        values["participants"] = [one.at["participant"] for one in together]
        values |= {name: [Path(one.files[name]) for one in together] for name in job.files}
        own = []
    else:
        values |= made
        own = [path[len(job.folder) + 1 :] for path in job.files.values()]
    seed_globals(getattr(job.config, "seed", ""), stage.name, *own)
    seconds = function(**_taken(function, values))
    return seconds or {next(iter(job.files.values())): perf_counter() - begun}


def paths_of(files: str | Sequence[str] | None) -> Any:
    """Return a file, several or none as paths."""
    if files is None or isinstance(files, str):
        return files and Path(files)
    return [Path(file) for file in files]


def _taken(function: Callable[..., Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a function's arguments by its names for them, such as ``round_`` for ``round``."""
    names = inspect.signature(function).parameters
    return {name: values[found] for name in names if (found := name.rstrip("_")) in values}
