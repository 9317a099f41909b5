"""Names of clients and classes, and partitions, from the files of runs' data."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pandas as pd

from fedstage.experiments.runs_file import SEED, ExperimentRun
from fedstage.results.labels import axis_label, show_value
from fedstage.settings.scores import Axis
from fedstage.storage.files import load_json
from fedstage.storage.tables import frame_of, load_table


def names_of(runs: Sequence[ExperimentRun]) -> dict[str, tuple[str, ...]]:
    """Return the names of `clients` and `classes` that all data sets of the runs share, if any.

    Clients have names only if the partition is natural.
    """
    infos = {run.info: load_json(run.info) for run in runs if run.info}
    clients = {
        tuple(infos[run.info].get("client_names", ()))
        if run.info and run.candidates[0].parts[-1].recipe.partition.name == "natural"
        else ()
        for run in runs
    }
    classes = {tuple(info["class_names"]) for info in infos.values()}
    found = {"clients": clients, "classes": classes}
    return {of: next(iter(names)) for of, names in found.items() if len(names) == 1 and any(names)}


def partitions_of(runs: Sequence[ExperimentRun]) -> dict[str, pd.DataFrame]:
    """Return the samples of each client and class of each partition of the first run's seed.

    A partition is named by the settings that tell it from the others, if there are several.
    """
    points: dict[str, list[dict[str, Axis]]] = {}
    for run in runs:
        if run.settings[SEED] == runs[0].settings[SEED]:
            points.setdefault(run.partition, []).append(run.settings)
    groups = list(points.values())
    axes = [axis for axis in runs[0].settings if _tells_apart(axis, groups)]
    labels = [
        ", ".join(f"{axis_label(axis)} = {show_value(of[0][axis])}" for axis in axes)
        for of in groups
    ]
    if len(set(labels)) < len(labels):  # no settings distinguish them: name the folders
        labels = [Path(file).parent.name for file in points]
    return {label: _samples(path) for label, path in zip(labels, points, strict=True)}


def _tells_apart(axis: str, groups: Sequence[Sequence[dict[str, Axis]]]) -> bool:
    """Whether a setting is constant within each partition, but not across partitions."""
    values = [{str(point.get(axis)) for point in group} for group in groups]
    return all(len(value) == 1 for value in values) and any(a != b for a, b in pairwise(values))


def _samples(path: str) -> pd.DataFrame:
    """Return the samples of each client and class, of all roles together."""
    table: pd.DataFrame = frame_of(load_table(path, ["client", "label", "samples"]))
    return table.groupby(["client", "label"])["samples"].sum().reset_index()
