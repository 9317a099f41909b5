"""The origin of the numbers of each run: what `fedstage why` reports about its metrics."""

import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fedstage
from fedstage.errors import FedstageError
from fedstage.experiments.runs_file import ExperimentRun
from fedstage.plan.runs import folders_of
from fedstage.settings.merging import flatten
from fedstage.storage.records import find_artefact, records_of
from fedstage.storage.why import facts_of, files_read, settings_of

#: The number and the seconds of a recipe's jobs, by the id of the recipe.
Jobs = dict[str, tuple[int, float]]
_OF_THESE = "of this recipe and those that it shares files with"


@dataclass(frozen=True)
class Origin:
    """What is known about a run's metrics; `fault` is the reason if nothing is."""

    file: str
    facts: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)  # key with dots -> value
    files: Sequence[str] = ()  # the files that were read, a line each
    machine: str = ""
    versions: str = ""
    fault: str = ""


def origins_of(runs: Sequence[ExperimentRun], root: Path) -> list[Origin]:
    """Return the origin of the metrics of each run, with `results` in the folder `root`."""
    jobs: Jobs = {}
    return [_origin(run, root, jobs) for run in runs]


def _origin(run: ExperimentRun, root: Path, jobs: Jobs) -> Origin:
    try:
        artefact = find_artefact(root / run.metrics)
        facts = dict(facts_of(artefact))
        versions = facts.pop("versions")
        count, seconds = spent(run, root, jobs)
        facts["jobs"] = f"{count}, {seconds:.1f} s in all, {_OF_THESE}"
        return Origin(
            run.metrics,
            facts,
            flatten(settings_of(artefact)),
            [line.removeprefix("  ") for line in files_read(artefact)],
            describe_machine(artefact.job.get("machine", {})),
            versions,
        )
    except FedstageError as error:
        return Origin(run.metrics, fault=str(error))


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


def shared_settings(origins: Sequence[Origin]) -> dict[str, str]:
    """Return the settings that all runs have in common."""
    known = [origin.settings for origin in origins if not origin.fault]
    if not known:
        return {}
    first, *others = known
    return {
        key: value
        for key, value in first.items()
        if all(other.get(key) == value for other in others)
    }


# --- circumstances --------------------------------------------------------------------------------


def circumstances(
    experiment: str, scale: str, output: Path, origins: Sequence[Origin]
) -> dict[str, str]:
    """Return how an experiment's report, and the numbers in it, were made."""
    known = [origin for origin in origins if not origin.fault]
    return {
        "Experiment": f"`{experiment}`, scale `{scale}`, {len(origins)} runs",
        "Made by": f"`snakemake --cores all {output}`",
        "Made at": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "Commit": commit(Path(), Path(fedstage.__file__).parent),
        "Versions": _each(origin.versions for origin in known),
        "Machine": _each(origin.machine for origin in known),
    }


def commit(*folders: Path) -> str:
    """Return the commit of the first folder that is in a repository, and whether files differ."""
    for folder in folders:
        try:
            name = _git(folder, "rev-parse", "HEAD")
            changed = _git(folder, "status", "--porcelain", "--untracked-files=no")
        except (OSError, subprocess.CalledProcessError):
            continue
        return f"`{name}`" + (", with changes that are not committed" if changed else "")
    return "not in a git repository"


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _each(texts: Iterable[str]) -> str:
    """Join what runs have in common, each text once."""
    return "; ".join(dict.fromkeys(texts)) or "not recorded"
