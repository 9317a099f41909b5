"""``fedstage list``: the available alternatives, and the progress of a target's runs."""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from fedstage.errors import FedstageError
from fedstage.experiments.catalogue import (
    Catalogue,
    load_methods,
    metrics_of,
    named_experiments,
    resolve_all,
    resolve_sound,
)
from fedstage.experiments.grid import check_known, short_name
from fedstage.experiments.library import experiment_names
from fedstage.experiments.links import folder_of
from fedstage.plan.graph import Stage
from fedstage.plan.runs import Run, split_target
from fedstage.plan.stages import GRAPH
from fedstage.plan.training import global_model
from fedstage.settings.aggregation import ServerOptimiser, ServerRule
from fedstage.settings.aggregators import Aggregator
from fedstage.settings.base import alternatives
from fedstage.settings.config_file import Config
from fedstage.settings.data import Data
from fedstage.settings.ensembles import EnsembleTrainer
from fedstage.settings.local_training import LocalTrainer
from fedstage.settings.merging import Raw
from fedstage.settings.models import Model
from fedstage.settings.partitions import Partition
from fedstage.settings.recipes import Recipe
from fedstage.settings.registry import PLUGINS
from fedstage.settings.validation import validate
from fedstage.storage.yaml_files import load_yaml

#: Heads, and rows of texts.
Listing = tuple[list[str], list[list[str]]]

#: Settings of a method that describe its parts, in the order of a round.
_PARTS = (
    "training",
    "local",
    "ensemble",
    "global",
    "aggregator",
    "distillation",
    "compression",
    "evaluate",
)
_NOTHING = "-"
#: A sentence does not end after "et al.".
_SENTENCE_ENDS = re.compile(r"(?<! al)\. (?=[A-Z`])")


def listed(kind: str, target: str | None, config: Path, workflow: Path) -> str:
    """Return a list as a table for a terminal, whose last column is not padded."""
    heads, rows = listing(kind, target, config, workflow)
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    padded = ((f"{text:{width}}" for text, width in zip(row, widths, strict=True))
              for row in (heads, *rows))  # fmt: skip
    return "\n".join("  ".join(row).rstrip() for row in padded)


def listing(what: str, target: str | None, config: Path, folder: Path) -> Listing:
    """Return the heads and rows of a list.

    Parameters
    ----------
    what : str
        One of `KINDS`.
    target : str or None
        The target whose runs are listed; by default all configured targets.
    config, folder : Path
        The configuration and the folder `workflow`.

    Raises
    ------
    FedstageError
        If the configuration or an experiment is not valid, or there is no such target.
    """
    check_known("list", what, KINDS)
    if target is not None and what != "runs":
        raise FedstageError(f"{what} {target}: only runs are listed by target")
    if what in _CHOICES:
        return _choices(_CHOICES[what])
    if what == "plugins":
        return _plugins()
    if what == "stages":
        return _stages()
    if what == "methods":
        return _methods(load_methods(folder / "methods.yaml"))
    checked = validate(Config, load_yaml(config), str(config))
    if what == "experiments":
        return _experiments(checked, folder)
    if target is not None:
        checked = checked.model_copy(update={"targets": [target]})
    names = named_experiments(checked, experiment_names(checked, folder), "")
    return _runs(resolve_all(checked, folder, names))


def _stages() -> Listing:
    """Return the stages of the graph, with what each reads and the names of its files."""
    rows = [
        [stage.name, stage.about, ", ".join(stage.options), ", ".join(_files_of(stage))]
        for stage in GRAPH
    ]
    return ["stage", "what it does", "reads", "makes"], rows


def _files_of(stage: Stage) -> Iterator[str]:
    """Yield the names of a stage's files below results, with the place in braces."""
    for name in stage.outputs.values():
        short = re.sub(r":[^}]*\}", "}", name)
        yield f"{stage.folder.name}/{stage.folder.pattern.replace('{recipe}', '...')}/{short}"


def _choices(union: Any) -> Listing:
    """Return the alternatives of a setting, with the first sentence about each class."""
    # Not by `names` of a choice: the average, which no module implements, is none.
    rows = [
        [", ".join(get_args(kind.model_fields["name"].annotation)), _summary(kind)]
        for kind in alternatives(union)
    ]
    return ["name", "about"], rows


def _plugins() -> Listing:
    """Return the alternatives of plugins, with where each is implemented and from which file."""
    rows = [
        [name, room, str(PLUGINS.files[kind.__module__]), _summary(kind)]
        for room, kinds in sorted(PLUGINS.choices.items())
        for name, kind in sorted(kinds.items())
    ]
    return ["name", "kind", "file", "about"], rows


def _summary(kind: type) -> str:
    """Return the first sentence of a class's docstring."""
    paragraph = " ".join((inspect.getdoc(kind) or "").partition("\n\n")[0].split())
    return _SENTENCE_ENDS.split(paragraph)[0].rstrip(".")


def _methods(methods: dict[str, Raw]) -> Listing:
    rows = [[name, str(raw.get("label", name)), _composed(raw)] for name, raw in methods.items()]
    return ["method", "label", "composed of"], rows


def _composed(raw: Raw) -> str:
    """Write the parts of a method: ``local fedavg, ensemble clients, global basic``."""
    like = {"like": raw["like"]} if "like" in raw else {}
    server = raw.get("aggregation", {}).get("server_optimizer")
    optimiser = {} if server is None else {"server optimiser": server}
    parts = {part: raw[part] for part in _PARTS if raw.get(part) is not None}
    composed = (like | parts | optimiser).items()
    return ", ".join(f"{part} {short_name(one)}" for part, one in composed)


def _experiments(config: Config, folder: Path) -> Listing:
    """Return all experiments, with the number of runs at each scale."""
    catalogue = resolve_sound(config, folder, experiment_names(config, folder), ())
    rows = []
    for name, experiment in catalogue.experiments.items():
        sizes = [f"{scale} {len(catalogue.runs[name, scale])}" for scale in experiment.scales]
        rows.append([name, ", ".join(sizes), experiment.title])
    return ["experiment", "runs at each scale", "title"], rows


def _runs(catalogue: Catalogue) -> Listing:
    """Return the runs of all targets, with the progress of each."""
    wanted = [split_target(target) for target in catalogue.config.targets]
    runs = [(key, run) for key in wanted for run in catalogue.runs[key]]
    axes = list(dict.fromkeys(axis for _, run in runs for axis in run.axes))
    several = len(wanted) > 1
    rows = [
        [
            *(["/".join(key)] if several else []),
            *(str(run.axes.get(axis, _NOTHING)) for axis in axes),
            _rounds_done(run),
            _accuracy(run),
            folder_of(run),
        ]
        for key, run in runs
    ]
    return [*(["target"] if several else []), *axes, "rounds", "accuracy", "folder"], rows


def _rounds_done(run: Run) -> str:
    """Write for how many of its rounds a run has models: ``3/8``."""
    if run.candidates or not isinstance(run.recipe, Recipe):
        return _NOTHING
    rounds, recipe = run.length.rounds, run.recipe
    made = (t for t in range(rounds, 0, -1) if Path(global_model(recipe, t, 0)).is_file())
    return f"{next(made, 0)}/{rounds}"


def _accuracy(run: Run) -> str:
    """Write the accuracy of a run's last evaluated round, if its metrics have been made."""
    from fedstage.storage.tables import load_table  # imports more than the standard library

    path = Path(metrics_of(run))
    if not path.is_file():
        return _NOTHING
    scores = load_table(path, ["round", "top1_accuracy"]).to_pylist()
    return f"{max(scores, key=lambda row: row['round'])['top1_accuracy']:.2f}"


_CHOICES: dict[str, Any] = {
    "models": Model,
    "data": Data,
    "partitions": Partition,
    "trainers": LocalTrainer,
    "ensembles": EnsembleTrainer,
    "rules": ServerRule,
    "optimisers": ServerOptimiser,
    "aggregators": Aggregator,
}
#: What can be listed.
KINDS = ("methods", *_CHOICES, "plugins", "stages", "experiments", "runs")
