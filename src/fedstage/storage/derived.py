"""The files that were made from others, according to the records of jobs."""

import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from fedstage.errors import FedstageError
from fedstage.plan.results import RESULTS
from fedstage.plan.stages import RECIPES
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.recipes import LocalRecipe, Recipe
from fedstage.storage.files import load_json
from fedstage.storage.provenance import SUFFIX
from fedstage.storage.records import by_path, read_settings

#: A job's record, by its path.
Records = Mapping[Path, Mapping[str, Any]]

_KINDS: dict[str, type[Recipe | LocalRecipe | OneShotRecipe]] = {
    "training": Recipe,
    "discriminators": Recipe,
    "local_models": LocalRecipe,
}

#: Stages that read all samples and the partition, but use the samples of one client or none.
_OWN = ("local_model", "quantised_model", "core")


def stored_records(root: Path) -> dict[Path, dict[str, Any]]:
    """Return the records of all jobs below a working folder."""
    return {path: load_json(path) for path in sorted((root / RESULTS / "logs").rglob(f"*{SUFFIX}"))}


def stored_recipes(root: Path) -> dict[str, Recipe | LocalRecipe | OneShotRecipe]:
    """Return the recipes that have files below a working folder, by the paths of their folders.

    Raises
    ------
    FedstageError
        If the settings of one cannot be read, so that it is unknown which clients it has seen.
    """
    return {
        path.parent.relative_to(root).as_posix(): read_settings(path, kind)
        for folder in RECIPES
        for kind in [_KINDS.get(folder, OneShotRecipe)]
        for path in sorted((root / RESULTS / folder).glob("*/recipe.yaml"))
    }


def made_from(files: Collection[str], records: Records, forgotten: Collection[int]) -> set[str]:
    """Return the files that were made from `files`, directly or indirectly.

    A file from which a job takes only samples of other clients does not count as its source: a
    client's model is not made from the samples of all clients. Nor is an aggregator that has
    `forgotten` clients made from other models' predictions on their samples. Files that describe a
    whole data set do not count either.
    """
    found: set[str] = set()
    while True:
        known = found.union(files)
        new = {
            path
            for job in records.values()
            if any(_passes(job, option, path, forgotten) for option, path in _read(job, known))
            for path in by_path(job["outputs"])
        }
        if new <= known:
            return found
        found |= new - set(files)


def _read(job: Mapping[str, Any], known: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield the known files that a job has read, with their options.

    The stages of results read what their description names.
    """
    for option, paths in job["inputs"].items():
        yield from ((option, path) for path in paths if path in known)
        if option == "runs" and (described := _text(next(iter(paths)))):
            yield from ((option, path) for path in known if json.dumps(path) in described)


def _passes(job: Mapping[str, Any], option: str, path: str, forgotten: Collection[int]) -> bool:
    """Whether what a job has read passes anything of a client on to what it makes."""
    if option == "info" or job["stage"] == "partition":
        return False
    of_all = option == "clients" or path.endswith("/train.safetensors")
    if job["stage"] == "aggregator" and _has_forgotten(job, forgotten):
        logits = path.endswith(("-aggregator.safetensors", "-validation.safetensors"))
        return not (of_all or logits or option == "histogram")
    if of_all and job["stage"] in _OWN:
        return job["options"].get("client") in forgotten
    return not (of_all and option == "data")


def _has_forgotten(job: Mapping[str, Any], forgotten: Collection[int]) -> bool:
    """Whether the recipe of an aggregator leaves all these clients out."""
    (path,) = job["inputs"]["recipe"]
    try:
        return set(forgotten) <= set(read_settings(Path(path), OneShotRecipe).forget)
    except FedstageError:
        return False


def _text(path: str) -> str:
    return Path(path).read_text() if Path(path).is_file() else ""
