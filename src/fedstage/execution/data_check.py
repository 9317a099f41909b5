"""``fedstage check-data``: whether a folder, or the data of an experiment, can be used."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from fedstage.data.folder import default_folder
from fedstage.data.inspection import inspect_data, settings_of
from fedstage.errors import FedstageError
from fedstage.execution.notices import noticing
from fedstage.experiments.catalogue import load_catalogue
from fedstage.experiments.library import experiment_names
from fedstage.plan.runs import split_target
from fedstage.settings.config_file import Config
from fedstage.settings.data import Data
from fedstage.settings.merging import plain
from fedstage.settings.suggestions import suggest
from fedstage.settings.validation import validate
from fedstage.storage.yaml_files import load_yaml


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
        If one of them cannot be used; the message has the first fault.
    """
    lines = []
    place = _place(named, config, workflow)
    if place is not None:
        chosen = settings_of(place, _given(settings))
        lines += _report(f"{place}: usable as data = {chosen.name}", chosen, place.resolve().parent)
    else:
        for chosen, folder in _of_experiment(named, config, workflow):
            lines += _report(f"data = {chosen.name}: usable", chosen, folder)
    return "\n".join(lines)


def _report(head: str, chosen: Data, folder: Path | None) -> list[str]:
    with noticing("check-data") as notices:
        found = inspect_data(chosen, folder)
    sys.stderr.write(notices.getvalue())
    return [head, *(f"  {line}" for line in found)]


def _given(settings: str) -> dict[str, Any]:
    try:
        given = yaml.safe_load(settings)
    except yaml.YAMLError:
        given = None
    if not isinstance(given, dict):
        raise FedstageError(f"--settings = {settings!r}: must be YAML such as {{label: outcome}}")
    return {str(key): plain(str(key), value) for key, value in given.items()}


def _place(named: str, config: Path, workflow: Path) -> Path | None:
    """Return the folder of a name, also one of the data folder, None for an experiment's name.

    FedstageError if there is neither, and an experiment has a similar name.
    """
    place = Path(named)
    if place.exists() or not config.is_file():
        return place
    checked = validate(Config, load_yaml(config), str(config))
    known, name = experiment_names(checked, workflow), split_target(named)[0]
    if name in known:
        return None
    inside = (_data_folder(checked) or Path()) / named
    if inside.exists():
        return inside
    if hint := suggest(name, known):
        raise FedstageError(f"{named}: no such folder or experiment{hint}")
    return place


def _data_folder(config: Config) -> Path | None:
    return Path(config.data_folder) if config.data_folder else default_folder()


def _of_experiment(named: str, config: Path, workflow: Path) -> Iterator[tuple[Data, Path | None]]:
    """Yield the data sets that the runs of an experiment train on, and the data folder."""
    raw = load_yaml(config)
    catalogue = load_catalogue({**raw, "targets": [named]}, workflow, "")
    runs = catalogue.runs[split_target(named)]
    for data in dict.fromkeys(run.recipe.data for run in runs):
        yield data, _data_folder(catalogue.config)
