"""All that the experiments ask for, resolved when the Snakefile is parsed.

Every line of every experiment and scale is in it, so that a job which sees one target only, such as
one on another machine, finds the settings behind the folder's name. No torch, no pandas here.
"""

import fnmatch
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from fedstage.errors import FedstageError
from fedstage.experiments.library import load_experiments
from fedstage.experiments.resolution import resolve
from fedstage.plan import artefacts
from fedstage.plan.evaluated import evaluated_name
from fedstage.plan.runs import Run
from fedstage.plan.sharing import (
    aggregating,
    aggregator_id,
    data_id,
    digest,
    initial_id,
    keeps_state,
    line_id,
    local_id,
    local_line,
    normalised,
    participation_id,
    partition_id,
    precision_id,
    quantised_line,
    student_id,
    teaching,
    undistilled,
    unquantised,
)
from fedstage.results.cells import check_cells
from fedstage.results.claims.library import Sourced, check_claims, check_metrics, load_claims
from fedstage.results.head import head_of
from fedstage.results.published.library import PublishedTable, find_published
from fedstage.settings.config_file import Config
from fedstage.settings.data import Data, HeldOut
from fedstage.settings.experiments import MEASURED, Experiment
from fedstage.settings.lines import Line, LocalLine
from fedstage.settings.merging import Raw
from fedstage.settings.models import Model
from fedstage.settings.one_shot import OneShotLine
from fedstage.settings.validation import validate
from fedstage.storage.yaml_files import load_yaml

T = TypeVar("T")


@dataclass(frozen=True)
class Initial:
    """What initial weights depend on."""

    data: Data
    model: Model
    seed: int


@dataclass(frozen=True)
class Catalogue:
    """Experiments, their runs, and what each folder's name stands for."""

    config: Config
    experiments: dict[str, Experiment]
    runs: dict[tuple[str, str], list[Run]]
    published: dict[tuple[str, str], PublishedTable]
    published_memory: dict[tuple[str, str], PublishedTable]
    claims: list[Sourced]
    data: dict[str, Data]
    partitions: dict[str, Line | LocalLine]
    plans: dict[str, Line]
    initial: dict[str, Initial]
    lines: dict[str, Line]
    local_lines: dict[str, LocalLine]
    precisions: dict[str, LocalLine]
    aggregators: dict[str, OneShotLine]
    students: dict[str, OneShotLine]
    choices: dict[str, Run]


def load_catalogue(config: Mapping[str, Any], folder: Path) -> Catalogue:
    """Resolve a configuration with the methods and experiments in `folder`.

    Raises
    ------
    FedstageError
        If anything in the configuration, or in any experiment file, is wrong.
    """
    checked = validate(Config, dict(config), "config.yaml")
    experiments = load_experiments(checked, folder / "experiments")
    path = folder / "methods.yaml"
    methods = load_yaml(path)
    for name, settings in methods.items():
        if not isinstance(settings, dict):
            raise FedstageError(
                f"{path}: {name} = {settings!r}: must be a mapping of keys to values"
            )
    runs = {
        (name, scale): resolve(name, experiment, scale, methods)
        for name, experiment in experiments.items()
        for scale in experiment.scales
    }
    targets = [found for target in checked.targets for found in _expand(target, runs)]
    checked = checked.model_copy(update={"targets": list(dict.fromkeys(targets))})
    published = find_published(experiments, runs, folder / "published")
    memory = find_published(experiments, runs, folder / "published", "communication")
    claims = load_claims(checked.claims, folder / "claims", folder / "published")
    grids = _grids(runs)
    check_claims(claims, grids)
    check_metrics(claims, experiments)
    _check_reach(experiments, grids)
    every = [one.line for resolved in runs.values() for run in resolved for one in run.trained()]
    choices = {
        choice_id(run): run for resolved in runs.values() for run in resolved if run.candidates
    }
    index = _index(every) | {"choices": choices}
    return Catalogue(checked, experiments, runs, published, memory, claims, **index)


def find(known: Mapping[str, T], name: str, kind: str) -> T:
    """Return what a folder's name stands for.

    Raises
    ------
    FedstageError
        If no experiment of this configuration has it.
    """
    if name not in known:
        raise FedstageError(f"{kind} {name}: no experiment of this configuration has it")
    return known[name]


def split_target(target: str) -> tuple[str, str]:
    """Read a target such as ``quickstart`` or ``fedsdd_table2/mini``; the scale is `default`."""
    name, _, scale = target.partition("/")
    return name, scale or "default"


def trained_runs(catalogue: Catalogue, target: str) -> list[Run]:
    """Return the runs of a target that have to be trained for its results."""
    name, scale = split_target(target)
    measured = MEASURED & set(catalogue.experiments[name].results)
    runs = catalogue.runs[name, scale] if measured else []
    return [one for run in runs for one in run.evaluated()]


def metrics_of(run: Run) -> str:
    """Return the metrics file of a run."""
    length = run.length
    if run.candidates:
        return artefacts.chosen_metrics_file(choice_id(run))
    if isinstance(run.line, LocalLine):
        client = length.evaluate_client
        return artefacts.local_metrics_file(run.line, length.role, length.rounds, client)
    if isinstance(run.line, OneShotLine):
        return artefacts.one_shot_metrics_file(run.line, length.role)
    name = evaluated_name(length.evaluate)
    every = length.evaluate_every
    return artefacts.metrics_file(run.line, name, length.role, length.rounds, every)


def choice_id(run: Run) -> str:
    """Name the folder of a choice: the candidates' lines, and what decides between them."""
    decisive = [metrics_of(one) for one in run.evaluated()]
    values = [one.axes for one in run.candidates]
    number = digest({"metrics": decisive, "values": values})
    settings = "_".join(path.rpartition(".")[2] for path in run.candidates[0].axes)
    return f"{settings}-seed{run.line.seed}-{number}"


def describe_runs(catalogue: Catalogue, experiment: str, scale: str) -> Raw:
    """Return what tables and figures need to know of an experiment, ready for JSON."""
    definition = find(catalogue.experiments, experiment, "experiment")
    runs = [
        {
            "settings": run.axes,
            "metrics": metrics_of(run),
            "partition": artefacts.label_histogram(artefacts.partition_line(run.line)),
        }
        for run in catalogue.runs[experiment, scale]
    ]
    about = head_of(experiment, scale, definition)
    for key in ("also", "over"):
        if value := getattr(definition.table, key):
            about[key] = value
    published = catalogue.published.get((experiment, scale))
    if published is None:
        return {**about, "runs": runs}
    paired = zip(runs, published.numbers, strict=True)
    beside = {"published": published.source, "notes": published.notes}
    return {**about, **beside, "runs": [{**run, "published": number} for run, number in paired]}


def claims_on(catalogue: Catalogue, experiment: str) -> list[Raw]:
    """Return the claims on an experiment, ready for JSON."""
    return [
        one.claim.model_dump(mode="json", exclude_defaults=True)
        for one in catalogue.claims
        if one.claim.experiment == experiment
    ]


def state_rounds(catalogue: Catalogue) -> list[int]:
    """Return the rounds whose round state is kept: each `state_every`-th, and every last one.

    A run of one round keeps none: no other is lengthened from so little.
    """
    every = catalogue.config.state_every
    runs = [one for runs in catalogue.runs.values() for run in runs for one in run.trained()]
    lasts = {
        run.length.rounds for run in runs if isinstance(run.line, Line) and keeps_state(run.line)
    } - {1}
    return sorted(lasts | set(range(every, max(lasts, default=every) + 1, every)))


def _check_reach(
    experiments: Mapping[str, Experiment], grids: Mapping[str, list[Mapping[str, Any]]]
) -> None:
    """Refuse accuracies to reach that no run of the experiment has."""
    for name, experiment in experiments.items():
        cells = experiment.communication.reach or {}
        check_cells(f"{name}: communication.reach", name, cells, grids[name])


def _grids(runs: Mapping[tuple[str, str], list[Run]]) -> dict[str, list[Mapping[str, Any]]]:
    """Return the axes of all runs of an experiment, of all scales."""
    grids: dict[str, list[Mapping[str, Any]]] = {}
    for (experiment, _), resolved in runs.items():
        grids.setdefault(experiment, []).extend(run.axes for run in resolved)
    return grids


def _expand(target: str, runs: Mapping[tuple[str, str], Any]) -> list[str]:
    """Return the targets that a pattern such as ``*/smoke`` names; at least one."""
    known = {"/".join(key): "/".join(key).removesuffix("/default") for key in runs}
    found = [known[name] for name in fnmatch.filter(known, "/".join(split_target(target)))]
    if not found:
        listed = ", ".join(sorted(known.values()))
        raise FedstageError(f"config.yaml: targets = {target!r}: unknown; use one of {listed}")
    return found


def _index(lines: Iterable[Line | LocalLine | OneShotLine]) -> dict[str, Any]:
    """Name everything that the lines, and the lines that they share, depend on."""
    asked = list(lines)
    one_shot = {line for line in asked if isinstance(line, OneShotLine)}
    alone = {line for line in asked if isinstance(line, LocalLine)}
    local = set(map(unquantised, alone)) | set(map(local_line, one_shot))
    asked_models = {*local, *alone, *map(quantised_line, one_shot)}
    federated = {
        kind(line) for line in asked if isinstance(line, Line) for kind in (normalised, undistilled)
    }
    every: set[Line | LocalLine] = {*local, *federated}
    taught = {teaching(line) for line in one_shot if line.distillation is not None}
    readers: list[Line | OneShotLine] = [*federated, *taught]
    public = {line.public for line in readers if not isinstance(line.public, HeldOut)}
    initial = {
        Initial(line.data, model, line.seed)
        for line in every
        for model in (line.model, *line.architectures)
    }
    initial |= {Initial(line.data, line.student, line.seed) for line in taught if line.student}
    return {
        "data": {data_id(data): data for data in {line.data for line in every} | public},
        "partitions": {partition_id(line): line for line in every},
        "plans": {participation_id(line): line for line in federated},
        "initial": {initial_id(one.data, one.model, one.seed): one for one in initial},
        "lines": {line_id(line): line for line in federated},
        "local_lines": {local_id(line): line for line in local},
        "precisions": {precision_id(line): line for line in asked_models},
        "aggregators": {aggregator_id(line): aggregating(line) for line in one_shot},
        "students": {student_id(line): line for line in taught},
    }
