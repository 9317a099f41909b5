"""The catalogue: experiments, resolved when the Snakefile is parsed.

An experiment is read when a target or an argument of the command line names it. If an argument
names a folder that belongs to none of these, all experiments are read, to find the settings that
the folder's name stands for. No torch, no pandas here.
"""

import fnmatch
import re
import shlex
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from fedstage.errors import FedstageError
from fedstage.experiments.claims import Sourced, check_claims, load_claims
from fedstage.experiments.grid import check_goal, with_seeds
from fedstage.experiments.library import experiment_names, faults_of, load_experiments
from fedstage.experiments.published import PublishedTable, find_published
from fedstage.experiments.resolution import resolve
from fedstage.plan.results import chosen_metrics_file
from fedstage.plan.runs import Run, settings_of_folders, split_target
from fedstage.plan.scores import metrics_file
from fedstage.plan.stages import OF_SETTINGS
from fedstage.protocol.digests import digest
from fedstage.settings.config_file import Config
from fedstage.settings.experiments import MEASURED, Experiment
from fedstage.settings.merging import Raw
from fedstage.settings.validation import see_list, suggest, validate
from fedstage.storage.yaml_files import load_yaml

T = TypeVar("T")

#: The number of names that a message lists.
_FEW = 12
#: Options of snakemake whose value may be the name of a folder.
_OF_FOLDERS = ("-d", "--directory", "--profile", "--workflow-profile")


@dataclass(frozen=True)
class Catalogue:
    """Experiments, their runs, and the settings of each folder's name."""

    config: Config
    folder: Path  # `workflow`
    experiments: dict[str, Experiment]
    runs: dict[tuple[str, str], list[Run]]
    published: dict[tuple[str, str], PublishedTable]
    published_communication: dict[tuple[str, str], PublishedTable]
    claims: list[Sourced]
    choices: dict[str, Run]

    @cached_property
    def folders(self) -> dict[str, Any]:
        """The settings that each folder is named after, by its path; slow with many runs."""
        every = (run for runs in self.runs.values() for run in runs)
        return settings_of_folders(part.recipe for run in every for part in run.trained())


def load_catalogue(
    config: Mapping[str, Any], folder: Path, arguments: str | None = None
) -> Catalogue:
    """Resolve the experiments that a configuration's targets and a command line name.

    Parameters
    ----------
    folder : Path
        The folder `workflow`, with methods, experiments and papers.
    arguments : str, optional
        Arguments of the command line; by default all experiments are resolved.

    Raises
    ------
    FedstageError
        If anything in the configuration, or in any of these experiments, is wrong.
    """
    checked = validate(Config, dict(config), "config.yaml")
    if arguments is None:
        return resolve_all(checked, folder)
    every = experiment_names(checked, folder)
    arguments = with_scales(arguments, every)
    names = named_experiments(checked, every, arguments)
    catalogue = resolve_all(checked, folder, names)
    named = named_folders(arguments) - catalogue.choices.keys()
    if not named or named <= {path.split("/")[2] for path in catalogue.folders}:
        return catalogue
    return resolve_sound(checked, folder, every, names)


def resolve_sound(
    config: Config, folder: Path, every: Collection[str], needed: Collection[str]
) -> Catalogue:
    """Return the catalogue of all experiments but broken ones; print a line about each of these.

    Raises
    ------
    FedstageError
        If a needed experiment is broken; the message has a line for each fault.
    """
    try:
        return resolve_all(config, folder)
    except FedstageError:
        faults = faults_of(every, lambda name: resolve_alone(config, folder, name))
        if not faults:
            raise
        if told := [fault for name, fault in faults.items() if name in needed]:
            raise FedstageError("\n".join(dict.fromkeys(told))) from None
    for fault in dict.fromkeys(faults.values()):
        print(
            f"fedstage: a broken experiment is left out, as nothing here needs it: {fault}",
            file=sys.stderr,
        )
    return resolve_all(config, folder, [name for name in every if name not in faults])


def resolve_alone(config: Config, folder: Path, name: str) -> Catalogue:
    """Return the catalogue of one experiment; FedstageError if it is broken."""
    return resolve_all(config.model_copy(update={"targets": [f"{name}/*"]}), folder, [name])


def named_experiments(config: Config, known: Collection[str], arguments: str) -> set[str]:
    """Return the experiments that a target or an argument names.

    FedstageError if a target names no experiment, before any is resolved.
    """
    asked = {name for name in known if re.search(rf"\b{re.escape(name)}/", arguments)}
    for target in config.targets:
        name = split_target(target)[0]
        if not (found := fnmatch.filter(known, name)):
            raise _unknown(target, known, name)
        asked.update(found)
    return asked


def named_folders(arguments: str) -> set[str]:
    """Return the names of the folders of settings that a command line has."""
    files = re.findall(r"\bresults/(\w+)/([^/\s'\"]+)", arguments)
    return {folder for kind, folder in files if kind in OF_SETTINGS}


def with_scales(arguments: str, known: Collection[str]) -> str:
    """Return arguments, with the scale `default` added to each experiment without a scale."""
    words = shlex.split(arguments)
    return shlex.join(
        f"{word}/default" if word in known and before not in _OF_FOLDERS else word
        for before, word in zip(["", *words], words, strict=False)
    )


def resolve_all(
    config: Config,
    folder: Path,
    names: Collection[str] | None = None,
    seeds: Collection[int] | None = None,
) -> Catalogue:
    """Return the catalogue of some experiments, by default all; see `load_catalogue`.

    `seeds` replace the seeds of all grids; seeds that a grid has come first, in its order.
    """
    experiments = load_experiments(config, folder, names)
    if seeds is not None:
        experiments = {name: with_seeds(one, seeds) for name, one in experiments.items()}
    methods = load_methods(folder / "methods.yaml")
    data_folder = Path(config.data_folder) if config.data_folder else None
    runs = {
        (name, scale): resolve(name, experiment, scale, methods, data_folder)
        for name, experiment in experiments.items()
        for scale in experiment.scales
    }
    targets = [found for target in config.targets for found in expand(target, runs)]
    papers = folder / "papers"
    claims = load_claims(config.claims, papers, None if names is None else experiments)
    published: dict[tuple[str, str], PublishedTable] = {}
    communicated: dict[tuple[str, str], PublishedTable] = {}
    for name, experiment in experiments.items():
        scales = {scale: runs[name, scale] for scale in experiment.scales}
        points = [run.axes for resolved in scales.values() for run in resolved]
        own = [one for one in claims if one.claim.experiment == name]
        check_claims(own, experiment.results, points)
        check_goal(name, experiment.communication.reach, points)
        metrics = {one.claim.metric for one in own}
        published |= find_published(name, experiment, scales, papers, metrics=metrics)
        communicated |= find_published(name, experiment, scales, papers, "communication")
    every = [run for resolved in runs.values() for run in resolved]
    choices = {choice_id(run): run for run in every if run.candidates}
    config = config.model_copy(update={"targets": list(dict.fromkeys(targets))})
    return Catalogue(config, folder, experiments, runs, published, communicated, claims, choices)


def check(config: Path, workflow: Path) -> str:
    """Return how many experiments and runs there are, after resolving all: ``fedstage check``.

    Parameters
    ----------
    workflow : Path
        The folder `workflow`.

    Raises
    ------
    FedstageError
        If experiments are not valid; the message has a line for each fault.
    """
    checked = validate(Config, load_yaml(config), str(config))
    names = experiment_names(checked, workflow)
    print(f"resolving {len(names)} experiments, which takes some seconds", file=sys.stderr)
    runs = resolve_sound(checked, workflow, names, names).runs
    return f"{len(names)} experiments, {sum(map(len, runs.values()))} runs: valid"


def load_methods(path: Path) -> dict[str, Raw]:
    """Return the settings of each method of a file."""
    methods = load_yaml(path)
    for name, settings in methods.items():
        if not isinstance(settings, dict):
            raise FedstageError(
                f"{path}: {name} = {settings!r}: must be a mapping of keys to values"
            )
    return methods


def find(known: Mapping[str, T], name: str, kind: str) -> T:
    """Return the settings behind a folder's name; FedstageError if no experiment has it."""
    if name not in known:
        raise FedstageError(f"{kind} {name}: no experiment of this configuration has it")
    return known[name]


def trained_runs(catalogue: Catalogue, target: str) -> list[Run]:
    """Return the runs of a target whose training its results need."""
    name, scale = split_target(target)
    measured = MEASURED & set(catalogue.experiments[name].results)
    runs = catalogue.runs[name, scale] if measured else []
    return [scored for run in runs for scored in run.evaluated()]


def metrics_of(run: Run) -> str:
    """Return the metrics file of a run."""
    if run.candidates:
        return chosen_metrics_file(choice_id(run))
    return metrics_file(run.recipe, run.length)


def choice_id(run: Run) -> str:
    """Name the folder of a choice, by the candidates' metrics and values."""
    decisive = [metrics_of(scored) for scored in run.evaluated()]
    values = [candidate.axes for candidate in run.candidates]
    number = digest({"metrics": decisive, "values": values})
    settings = "_".join(path.rpartition(".")[2] for path in run.candidates[0].axes)
    return f"{settings}-seed{run.recipe.seed}-{number}"


def expand(target: str, runs: Mapping[tuple[str, str], Any]) -> list[str]:
    """Return the targets that a pattern such as ``*/smoke`` names; at least one."""
    known = {"/".join(key): "/".join(key).removesuffix("/default") for key in runs}
    found = [known[name] for name in fnmatch.filter(known, "/".join(split_target(target)))]
    if not found:
        name = split_target(target)[0]
        scales = [shown for full, shown in known.items() if full.startswith(f"{name}/")]
        raise _unknown(target, scales or known.values(), target)
    return found


def _unknown(target: str, known: Collection[str], nearest: str) -> FedstageError:
    """Return the error about a target, with possible targets, or where to list them if many."""
    few = len(known) <= _FEW
    listed = f"use one of {', '.join(sorted(known))}" if few else see_list("experiments")
    return FedstageError(f"targets = {target!r}: unknown; {listed}{suggest(nearest, known)}")
