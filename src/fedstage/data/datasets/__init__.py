"""Data sets read into arrays: one module each, with the function ``load(settings, folder)``."""

import logging
from collections.abc import Sequence
from pathlib import Path

import torch

from fedstage.data.datasets.images import Dataset
from fedstage.data.datasets.inspection import odd
from fedstage.data.excerpts import quoted
from fedstage.errors import FedstageError
from fedstage.settings.base import implementation
from fedstage.settings.data import Data
from fedstage.settings.data_sets import Drawn

_LOGGER = logging.getLogger(__name__)


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
    if isinstance(settings, Drawn):
        for line in odd(dataset):
            _LOGGER.warning("%s", line)
    return dataset


def check_classes(
    name: str, classes: Sequence[str], train: torch.Tensor, test: torch.Tensor
) -> None:
    """Warn of each class of the test labels that has no training sample, and thus no client.

    Raises
    ------
    FedstageError
        If all training samples are of one class.
    """
    trained = train.unique().tolist()
    if len(trained) < 2:
        names = " and ".join(quoted(classes[label]) for label in trained)
        fault = f"all training samples are of class {names}; at least 2 classes are needed"
        raise FedstageError(f"data = {name}: {fault}")
    labels, counts = torch.unique(test, return_counts=True)
    for label, count in zip(labels.tolist(), counts.tolist(), strict=True):
        if label not in trained:
            told = f"{quoted(classes[label])}, which {count} of {len(test)} test samples are of"
            _LOGGER.warning("data = %s: no client has samples of class %s", name, told)
