"""Raw files behind a result, for ``fedstage why``: of which data sets, and what has changed."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from fedstage.errors import FedstageError
from fedstage.plan.results import RESULTS
from fedstage.settings.data import DataOption
from fedstage.settings.data_sets import DataSet
from fedstage.storage.files import load_json
from fedstage.storage.provenance import SUFFIX
from fedstage.storage.raw_files import Contents, raw_of_job
from fedstage.storage.yaml_files import load_yaml, read_recipe

UNCHANGED = ", unchanged"
#: Settings that name a data set; `public` may also name something else.
_KEYS = ("data", "public")
_RECIPE, _RUNS = "recipe.yaml", ".runs.json"


class Changes(NamedTuple):
    """The raw files of a data set: their folder, and a pair (what became of it, name) for each."""

    data: str
    folder: Path
    files: list[tuple[str, str]]


def raw_changes(root: Path, files: Iterable[str], folder: Path | None) -> Iterator[Changes]:
    """Yield the raw files of each data set that `files` below a working folder belong to.

    They are looked for in the data folder that a run would read: the one in ``config.yaml``, or
    `folder`, or else the one from which the job read them.
    """
    found = (re.match(rf"{RESULTS}/data/([^/]+)/", file) for file in files)
    for data in dict.fromkeys(match[1] for match in found if match):
        path = root / RESULTS / "logs" / "dataset" / f"{data}{SUFFIX}"
        try:
            job = load_json(path) if path.is_file() else {}
        except FedstageError as error:
            yield Changes(data, path.parent, [("its record is damaged, left out", str(error))])
            continue
        then = job.get("raw", {"folder": None, "files": {}})
        place = _configured(root) or folder or then["folder"]
        recipe = root / RESULTS / "data" / data / _RECIPE
        if not (job and place is not None and recipe.is_file()):
            continue
        try:
            settings = read_recipe(recipe, DataOption).data
        except FedstageError as error:
            yield Changes(data, recipe.parent, [("its recipe is damaged, left out", str(error))])
            continue
        yield Changes(data, Path(place), list(_compare(settings, then["files"], Path(place))))


def _compare(settings: DataSet, then: Contents, folder: Path) -> Iterator[tuple[str, str]]:
    files = raw_of_job(settings, folder).get("raw", {}).get("files", {})
    if then and not files:
        yield "not there now, so the result stays", f"all {len(then)}"
        return
    for name in sorted({*then, *files}):
        digest = files.get(name, "gone")
        if name not in then:
            yield f"{digest}, added", name
        else:
            same = digest == then[name]
            yield (f"{digest}{UNCHANGED}" if same else f"{digest}, was {then[name]}"), name


def _configured(root: Path) -> Path | None:
    """Return the data folder of a working folder's configuration, if it names one."""
    path = root / "config.yaml"
    try:
        folder = load_yaml(path).get("data_folder") if path.is_file() else None
    except FedstageError:
        return None
    return root / folder if isinstance(folder, str) else None


def data_behind(root: Path, inputs: Iterable[str]) -> list[str]:
    """Return the files of the data sets that are named by recipes and runs files among `inputs`.

    All names are relative to a working folder. Recipes and runs files that are gone are skipped.
    """
    found = [data for name in inputs for data in _named(root / name)]
    return [file for file, settings in _made(root) if settings in found]


def _named(path: Path) -> Iterator[Any]:
    """Yield the settings of data sets in a recipe or a runs file; of other files, nothing."""
    if not path.is_file():
        return
    if path.name == _RECIPE:
        yield from _below(load_yaml(path))
    elif path.name.endswith(_RUNS):
        yield from _below(load_json(path))


def _below(value: Any) -> Iterator[Any]:
    """Yield the settings of data sets, however deep in a mapping or list."""
    if isinstance(value, dict):
        yield from (value[key] for key in _KEYS if key in value)
        value = value.values()
    if not isinstance(value, str | int | float | None):
        for one in value:
            yield from _below(one)


def _made(root: Path) -> Iterator[tuple[str, Any]]:
    """Yield a file of each data set that has been made, and its settings."""
    for path in sorted((root / RESULTS / "data").glob(f"*/{_RECIPE}")):
        for settings in _below(load_yaml(path)):
            yield f"{RESULTS}/data/{path.parent.name}/info.json", settings
