"""What a run has taken: its jobs, their seconds and their machine, from records."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedstage.experiments.runs_file import ExperimentRun
from fedstage.plan.runs import folders_of
from fedstage.storage.records import records_of

#: The number and the seconds of a recipe's jobs, by the id of the recipe.
Jobs = dict[str, tuple[int, float]]


def spent(run: ExperimentRun, root: Path, jobs: Jobs) -> tuple[int, float]:
    """Return the number of jobs of a run's recipes, and their seconds.

    `jobs` caches the jobs of each recipe, and is extended by missing ones.
    """
    parts = run.candidates[run.which()].parts
    paths = (path for part in parts for path in folders_of(part.recipe))
    ids = dict.fromkeys(path.rpartition("/")[2] for path in paths)
    for name in ids:
        if name not in jobs:
            seconds = [float(job["compute_s"]) for _, job in records_of(root, name)]
            jobs[name] = len(seconds), sum(seconds)
    return sum(jobs[name][0] for name in ids), sum(jobs[name][1] for name in ids)


def describe_machine(machine: Mapping[str, Any]) -> str:
    """Write a machine as a record has it: ``AMD EPYC, 2 cores, no GPU``."""
    if not machine:
        return "not recorded"
    gpu = machine.get("gpu") or "no GPU used"
    return f"{machine.get('processor', 'unknown')}, {machine.get('cores', '?')} cores, {gpu}"
