"""``fedstage check-data``: whether a folder, or the data of an experiment, can be used."""

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml
from pyarrow.types import is_struct

from fedstage.data.datasets import check_classes, load
from fedstage.data.datasets.inspection import described
from fedstage.data.layouts import IMAGE_COLUMNS, is_read
from fedstage.data.table_files import read_schema
from fedstage.errors import FedstageError, each
from fedstage.execution.notes import noticing
from fedstage.experiments.catalogue import load_catalogue
from fedstage.experiments.library import experiment_names
from fedstage.plan.runs import split_target
from fedstage.protocol.digests import canonical
from fedstage.settings.config_file import Config
from fedstage.settings.data import Data, DataOption, ImageFolder, TableData
from fedstage.settings.merging import plain
from fedstage.settings.validation import suggest, validate
from fedstage.storage.raw_files import default_folder, visible
from fedstage.storage.yaml_files import load_yaml

_TESTED = 0.2  # the share for testing that is filled in


def check_data(named: str, settings: str, config: Path, workflow: Path) -> str:
    """Return a description of a folder of data, or of each data set of an experiment.

    Parameters
    ----------
    named : str
        A folder, also of the data folder, or an experiment such as patients or
        fedsdd_table2/mini.
    settings : str
        Settings of the data set in a folder, as YAML: ``{label: outcome}``.
    config, workflow : Path
        config.yaml and the folder `workflow`, for experiments.

    Raises
    ------
    FedstageError
        If one of them cannot be used; the message has all faults, a line each.
    """
    content = load_yaml(config) if config.is_file() else {"targets": ["*"]}
    checked = validate(Config, content, str(config))
    folder = Path(checked.data_folder) if checked.data_folder else default_folder()
    place = _place(named, experiment_names(checked, workflow), folder)
    if place is None:
        found = _of_experiment(named, content, workflow)
        return "\n".join(
            each(lambda one: _report(f"data = {one.name}: usable", one, folder), found)
        )
    above, name = _below(place, folder)
    chosen = _settings_of(place, _given(settings) | {"folder": name})
    return _report(f"{place}: usable as data = {chosen.name}", chosen, above)


def _settings_of(place: Path, given: Mapping[str, Any]) -> Data:
    """Return the settings of the data set in a folder, including the `given` ones.

    Raises
    ------
    FedstageError
        If the folder has neither tables nor images, or a setting is wrong.
    """
    if not place.is_dir():
        raise FedstageError(f"{place}: no such folder")
    name = given.get("name") or _kind(place, given)
    return validate(DataOption, {"data": {**given, "name": name}}, str(place)).data


def _below(place: Path, folder: Path | None) -> tuple[Path, str]:
    """Return the data folder and the name of a folder in it; for one elsewhere, that it is in."""
    known, absolute = (folder or Path()).absolute(), place.absolute()
    if folder and absolute != known and absolute.is_relative_to(known):
        return known, absolute.relative_to(known).as_posix()
    return absolute.parent, absolute.name


def _kind(place: Path, given: Mapping[str, Any]) -> str:
    """Return the name of the data set that reads the files of a folder."""
    files = [path for path in sorted(visible(place)) if is_read(path)]
    tables = [path for path in files if path.suffix.lower() in TableData.suffixes]
    images = any(path.suffix.lower() in ImageFolder.suffixes for path in files)
    with suppress(FedstageError):  # a damaged file is left to the loader
        for path in tables:
            fields = read_schema(path) if path.suffix.lower() == ".parquet" else ()
            if any(one.name in IMAGE_COLUMNS and is_struct(one.type) for one in fields):
                return "parquet"
    if tables and not (images and all(path.parent != place for path in tables)):
        return "texts" if "text" in given else "table"
    if images:
        return "image_folder"
    if any(path.suffix == ".safetensors" for path in visible(place)):
        must = "name them in --settings, as name: image_tensors or name: feature_tensors"
        raise FedstageError(f"{place}: has tensors; {must}")
    raise FedstageError(f"{place}: has no {', no '.join(TableData.suffixes)} and no images")


def _report(head: str, chosen: Data, folder: Path | None) -> str:
    """Describe a data set, with notices and the settings to paste.

    Raises
    ------
    FedstageError
        With all faults, also those that show when what is missing is filled in.
    """
    faults: list[str] = []
    with noticing("check-data") as notices:
        while True:
            try:
                data = load(chosen, folder)
                check_classes(chosen.name, data.class_names, data.train.labels, data.test.labels)
                break
            except FedstageError as error:
                found = [line for line in str(error).splitlines() if line not in faults]
                faults += found
                if not any("set data.test_fraction" in fault for fault in found):
                    break
                chosen = chosen.model_copy(update={"test_fraction": _TESTED})
    lines = [line.partition("warning: ")[2] for line in notices.getvalue().splitlines()]
    told = [f"notice: {line}" for line in dict.fromkeys(lines)]
    if faults:
        told.append(f"settings: {_pasted(chosen, chosen.has_clients)}")
        raise FedstageError("\n".join([*faults, *told]))
    told.append(f"settings: {_pasted(chosen, data.train.clients is not None)}")
    return "\n".join([head, *(f"  {line}" for line in (*described(data), *told))])


def _pasted(chosen: Data, has_clients: bool) -> str:
    """Return settings of data, and of the partition that they suit, as one line of YAML."""
    keys = [key for key in ("folder", "label") if hasattr(chosen, key)]
    given = {key: getattr(chosen, key) for key in keys} | canonical(chosen)
    del given["name"]
    pasted = {"data": {chosen.name: given} if given else chosen.name}
    natural = {"partition": "natural"} if has_clients else {}
    return yaml.safe_dump(pasted | natural, default_flow_style=True, sort_keys=False,
                          allow_unicode=True, width=10**6).strip()[1:-1]  # fmt: skip


def _given(settings: str) -> dict[str, Any]:
    try:
        given = yaml.safe_load(settings)
    except yaml.YAMLError:
        given = None
    if not isinstance(given, dict):
        raise FedstageError(f"--settings = {settings!r}: must be YAML such as {{label: outcome}}")
    return {str(key): plain(str(key), value) for key, value in given.items()}


def _place(named: str, known: Collection[str], folder: Path | None) -> Path | None:
    """Return the folder of a name, also one of the data folder, None for an experiment's name.

    FedstageError if there is neither, and an experiment has a similar name.
    """
    place, name = Path(named), split_target(named)[0]
    if place.exists():
        return place
    if name in known:
        return None
    inside = (folder or Path()) / named
    if inside.exists():
        return inside
    if hint := suggest(name, known):
        raise FedstageError(f"{named}: no such folder or experiment{hint}")
    return place


def _of_experiment(named: str, config: Mapping[str, Any], workflow: Path) -> Iterable[Data]:
    """Return the data sets that runs train on, or encode, each once."""
    catalogue = load_catalogue({**config, "targets": [named]}, workflow, "")
    runs = catalogue.runs[split_target(named)]
    return dict.fromkeys(getattr(run.recipe.data, "of", run.recipe.data) for run in runs)
