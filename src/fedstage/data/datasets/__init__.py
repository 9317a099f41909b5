"""Data sets read into arrays: one module a kind, chosen by the settings."""

from pathlib import Path

from fedstage.data.datasets.ag_news import load_ag_news
from fedstage.data.datasets.camelyon16 import load_camelyon16
from fedstage.data.datasets.digits import load_digits
from fedstage.data.datasets.heart_disease import load_heart_disease
from fedstage.data.datasets.images import Dataset, Images
from fedstage.data.datasets.isic2019 import load_isic2019
from fedstage.data.datasets.parquet import load_parquet
from fedstage.data.datasets.torchvision_data import load_torchvision
from fedstage.errors import FedstageError
from fedstage.settings.data import (
    AgNews,
    Camelyon16,
    Data,
    Digits,
    HeartDisease,
    Isic2019,
    ParquetData,
    TorchvisionData,
)

__all__ = ["Dataset", "Images", "load"]


def load(settings: Data, folder: Path | None) -> Dataset:
    """Read the data set of `settings`; `folder` is the data folder, which the digits do not need.

    Raises
    ------
    FedstageError
        If the data folder is needed and missing, or its files are missing, damaged or too few.
    """
    match settings:
        case Digits():
            return load_digits(settings)
        case TorchvisionData():
            return load_torchvision(settings, _existing(folder, settings.name))
        case ParquetData():
            return load_parquet(settings, _existing(folder, settings.name))
        case HeartDisease():
            return load_heart_disease(settings, _existing(folder, settings.name))
        case Isic2019():
            return load_isic2019(settings, _existing(folder, settings.name))
        case Camelyon16():
            return load_camelyon16(settings, _existing(folder, settings.name))
        case AgNews():
            return load_ag_news(settings, _existing(folder, settings.name))


def _existing(folder: Path | None, name: str) -> Path:
    hint = "set data_folder in config.yaml or FEDSTAGE_DATA"
    if folder is None:
        raise FedstageError(f"data = {name}: the data folder is not set; {hint}")
    if not folder.is_dir():
        raise FedstageError(f"data = {name}: data folder {folder}: no such folder; {hint}")
    return folder
