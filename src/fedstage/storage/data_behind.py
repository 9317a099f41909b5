"""The data sets behind files whose jobs do not read them, such as tables and aggregated models."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from fedstage.errors import FedstageError
from fedstage.plan.results import RESULTS
from fedstage.storage.files import load_json
from fedstage.storage.provenance import SUFFIX
from fedstage.storage.yaml_files import load_yaml

#: Settings that name a data set; `public` may also name something else.
_KEYS = ("data", "public")
_RECIPE, _RUNS = "recipe.yaml", ".runs.json"


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
    """Yield a file of each data set that has been made, and its settings.

    `fedstage.storage.raw_changes` reports damaged records.
    """
    for path in sorted((root / RESULTS / "logs" / "dataset").glob(f"*{SUFFIX}")):
        name = path.name.removesuffix(SUFFIX)
        try:
            settings = json.loads(load_json(path)["options"]["settings"])
        except FedstageError:
            settings = None
        yield f"{RESULTS}/data/{name}/info.json", settings
