"""Data sets read into arrays: one module each, with the function ``load(settings, folder)``."""

from pathlib import Path

from fedstage.data.datasets.images import Dataset
from fedstage.errors import FedstageError
from fedstage.settings.base import implementation
from fedstage.settings.data import Data


def load(settings: Data, folder: Path | None) -> Dataset:
    """Read the data set of `settings`, in most cases from the data folder.

    Raises
    ------
    FedstageError
        If the data folder is needed and missing, or its files are missing, damaged or too few.
    """
    if settings.in_folder and (folder is None or not folder.is_dir()):
        fault = f"data folder {folder}: no such folder" if folder else "the data folder is not set"
        hint = "set data_folder in config.yaml or FEDSTAGE_DATA"
        raise FedstageError(f"data = {settings.name}: {fault}; {hint}")
    place = folder if settings.in_folder else None
    dataset: Dataset = implementation(settings).load(settings, place)
    return dataset
