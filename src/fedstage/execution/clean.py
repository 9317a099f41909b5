"""``fedstage clean``: delete results that no experiment needs any more.

Folders of runs are named after settings and shared by experiments, so all experiments together
determine which folders are needed.
"""

import os
import shutil
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from fedstage.errors import FedstageError
from fedstage.experiments.catalogue import (
    Catalogue,
    choice_id,
    expand,
    resolve_sound,
)
from fedstage.experiments.library import experiment_names
from fedstage.plan.results import FOLDERS, RESULTS
from fedstage.plan.runs import settings_of_folders, split_target
from fedstage.plan.stages import OF_SETTINGS
from fedstage.results.labels import human_bytes
from fedstage.settings.config_file import Config
from fedstage.settings.validation import validate
from fedstage.storage.provenance import SUFFIX
from fedstage.storage.yaml_files import load_yaml

#: An experiment and a scale.
Place = tuple[str, str]


def clean(keep: Sequence[str], config: Path, workflow: Path, delete: bool) -> str:
    """Return what is deleted, or would be, with its size; its links and logs are deleted, too.

    Parameters
    ----------
    keep : sequence of str
        Targets whose files are needed, patterns as in config.yaml; by default all experiments at
        all scales.

    Raises
    ------
    FedstageError
        If an experiment that has results is broken, or a run works in this folder.
    """
    if any(Path(".snakemake/locks").glob("*")):
        raise FedstageError(
            "a run works in this folder, or was killed; if it was, unlock it: snakemake --unlock"
        )
    paths, logs = _unneeded(keep, config, workflow)
    unneeded = {path: _size(path) for path in paths}
    if delete:
        for path in (*unneeded, *logs):
            _delete(path)
    rows = [f"{path}: {human_bytes(size)}" for path, size in unneeded.items()]
    total = f"{len(rows)} folders and files of results, {human_bytes(sum(unneeded.values()))}"
    return "\n".join([*rows, f"{total}: {'deleted' if delete else '--delete deletes them'}"])


def _unneeded(keep: Sequence[str], config: Path, workflow: Path) -> tuple[list[Path], list[Path]]:
    """Return the results and the logs that are not needed.

    All experiments are resolved, except broken ones without results.
    """
    checked = validate(Config, load_yaml(config), str(config))
    every = experiment_names(checked, workflow)
    present = [name for name in every if Path(RESULTS, "descriptions", name).is_dir()]
    catalogue = resolve_sound(checked, workflow, every, present)
    kept = (expand(pattern, catalogue.runs) for pattern in keep or ["*/*"])
    targets = {split_target(target) for target in chain.from_iterable(kept)}
    needed = _needed(catalogue, targets)
    return list(_results(targets, needed)), list(_logs(targets, needed))


def _needed(catalogue: Catalogue, targets: Collection[Place]) -> set[str]:
    """Return the folders of settings, without the leading `results`, that targets need."""
    runs = [run for target in targets for run in catalogue.runs[target]]
    folders = settings_of_folders(part.recipe for run in runs for part in run.trained())
    choices = (f"{FOLDERS['choice']}/{choice_id(run)}" for run in runs if run.candidates)
    return {*(folder.removeprefix(f"{RESULTS}/") for folder in folders), *choices}


def _results(targets: Collection[Place], needed: Collection[str]) -> Iterator[Path]:
    """Yield the folders of settings, and the results of experiments, that are not needed.

    With the lists of raw files and of candidates of those folders. Digests of source stay: they
    are few, and of no experiment.
    """
    named = {"raw": "data", "descriptions": FOLDERS["choice"]}
    for kind in _inside(Path(RESULTS)):
        if kind.name in OF_SETTINGS:
            yield from (path for path in _inside(kind) if f"{kind.name}/{path.name}" not in needed)
        elif kind.name not in ("logs", "source"):  # logs are deleted with their results
            for one in _inside(kind):
                if one.is_dir():
                    yield from _of_others(one, targets)
                elif f"{named[kind.name]}/{_stem(one)}" not in needed:
                    yield one


def _stem(path: Path) -> str:
    return path.name.removesuffix(".json").removesuffix(".choice")


def _logs(targets: Collection[Place], needed: Collection[str]) -> Iterator[Path]:
    """Yield records of folders that are not needed, and of results of other targets.

    The path of a log is the stage, followed by the folder, or by the experiment and the scale.
    """
    names = {path.rpartition("/")[2] for path in needed}
    experiments = {experiment for experiment, _ in targets}
    for stage in _inside(Path(RESULTS, "logs")):
        for log in _inside(stage):
            if log.name in experiments:
                yield from _of_others(log, targets)
            elif log.name.removesuffix(SUFFIX) not in names:
                yield log


def _of_others(experiment: Path, targets: Iterable[Place]) -> Iterator[Path]:
    """Yield the paths in the folder of an experiment that belong to none of the targets' scales."""
    scales = [scale for name, scale in targets if name == experiment.name]
    starts = tuple(f"{scale}{end}" for scale in scales for end in "._")
    for path in _inside(experiment):
        if path.name not in scales and not path.name.startswith(starts):
            yield path


def _inside(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _size(path: Path) -> int:
    """Return the bytes of a file, or of all files in a folder; links are not followed."""
    inside = (Path(at, name) for at, _, names in os.walk(path) for name in names)
    return sum(file.lstat().st_size for file in (inside if path.is_dir() else [path]))


def _delete(path: Path) -> None:
    """Delete a file or a folder, and the folders above it below results that are then empty."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
    for folder in path.parents:
        if Path(RESULTS) in folder.parents and not _inside(folder):
            folder.rmdir()
