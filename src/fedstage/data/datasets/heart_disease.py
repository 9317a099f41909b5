"""Fed-Heart-Disease: the UCI Heart Disease files of four centres, prepared as FLamby does.

Janosi, Steinbrunn, Pfisterer and Detrano 1988 (CC BY 4.0); Ogier du Terrail et al., FLamby, NeurIPS
2022. Rows and columns are counted from 0.

1. Slope, ca and thal (columns 10 to 12) are dropped, then each row with a missing value.
2. The label is 1 where num (column 13) is not 0.
3. In each centre 66 % of the rows are for training: scikit-learn's split with `random_state` 43,
   stratified unless a class has two rows or fewer.
4. Chest pain and the resting electrocardiogram are one-hot coded without their first level.
5. (x - mean) / (deviation + 1e-9), with mean and sample deviation (n - 1) of the training rows.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias
from urllib.request import urlopen

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from fedstage.data.datasets.downloads import download
from fedstage.data.datasets.images import Dataset, Images
from fedstage.errors import FedstageError
from fedstage.settings.data import HeartDisease

#: The centres in the order of their numbers, and the SHA-256 of their files.
CENTRES = {
    "cleveland": "a74b7efa387bc9d108d7d0115d831fe9b414b29ae7124f331b622b4efa0427c8",
    "hungarian": "d1ad108f785768cd3d7e82dc522e6f5a61eea93cccfb3a46ee8076f73fc3d796",
    "switzerland": "834a405ccf5b66ab4056bb77794adc8df0b7125186454c0a1d002d33c6c3b314",
    "va": "e7c93d8d0d2acdadfa4c5e8de768e2191e7f618b952e29623f1f0d5949ff6b8f",
}
SOURCE = "https://archive.ics.uci.edu/ml/machine-learning-databases/heart-disease"
CLASSES = ("no disease", "disease")

_DROPPED, _LABEL = [10, 11, 12], 13
_NUMERIC = (0, 1, 3, 4, 5, 7, 8, 9)  # the others are coded, or the label
_CODED = {2: (2, 3, 4), 6: (1, 2)}  # without the first level
_TRAIN, _SPLIT_SEED = 0.66, 43
_SMALLEST = 3  # rows of a class, for a stratified split
_EPSILON = 1e-9
_SECONDS = 60  # until an unanswered download fails

Rows: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Centre:
    """A centre's patients: features [n, 13], labels [n], and ascending row numbers of each part."""

    features: Rows
    labels: NDArray[np.int64]
    lines: NDArray[np.int64]  #: of each row in the file
    train: NDArray[np.int64]
    test: NDArray[np.int64]


def load(settings: HeartDisease, folder: Path) -> Dataset:
    """Read the four files below the data folder, downloading them if their folder is missing.

    Raises
    ------
    FedstageError
        If a file does not match its checksum, or the download fails.
    """
    place = folder / settings.folder
    download(place, partial(_fetch, place.name), SOURCE)
    for centre, checksum in CENTRES.items():
        _verify(place / file_of(centre), checksum)
    return as_dataset([read_centre(place / file_of(centre)) for centre in CENTRES])


def file_of(centre: str) -> str:
    """Return the official name of a centre's file."""
    return f"processed.{centre}.data"


def as_dataset(centres: Sequence[Centre]) -> Dataset:
    """Return the centres as a data set whose clients are the centres."""
    trains, tests = [centre.train for centre in centres], [centre.test for centre in centres]
    rows = [centre.features[centre.train] for centre in centres]
    own = [_statistics(part) for part in rows]
    pooled = [_statistics(np.concatenate(rows))] * len(centres)
    train = _samples(centres, trains, own)
    none, test_own = train.none, _samples(centres, tests, own)
    test = _samples(centres, tests, pooled)
    return Dataset(train, test, none.images, none, CLASSES, test_own)


def read_centre(path: Path) -> Centre:
    """Read and split a centre's file: 14 columns separated by commas, ``?`` where unknown."""
    table = pd.read_csv(path, header=None, na_values="?").drop(columns=_DROPPED).dropna()
    labels = np.asarray(table[_LABEL] != 0).astype(np.int64)
    coded = [table[column] == level for column, levels in _CODED.items() for level in levels]
    features = np.column_stack([table[list(_NUMERIC)], *coded]).astype(np.float64)
    return Centre(features, labels, table.index.to_numpy(np.int64), *_split(labels))


def _split(labels: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the row numbers for training and for testing, both ascending."""
    from sklearn.model_selection import train_test_split  # slow to import

    counts = np.bincount(labels, minlength=len(CLASSES))
    train, test = train_test_split(
        np.arange(len(labels)), train_size=_TRAIN, test_size=1 - _TRAIN, random_state=_SPLIT_SEED,
        stratify=labels if min(counts) >= _SMALLEST else None,
    )  # fmt: skip
    return np.sort(train), np.sort(test)


def _statistics(rows: Rows) -> tuple[Rows, Rows]:
    return rows.mean(axis=0), rows.std(axis=0, ddof=1) + _EPSILON


def _samples(
    centres: Sequence[Centre], rows: Sequence[NDArray[np.int64]],
    statistics: Sequence[tuple[Rows, Rows]],
) -> Images:  # fmt: skip
    """Return rows of all centres, standardised, centre by centre."""
    features, labels = [], []
    numbers = np.repeat(np.arange(len(centres)), [len(own) for own in rows])
    for centre, own, (mean, deviation) in zip(centres, rows, statistics, strict=True):
        features.append((centre.features[own] - mean) / deviation)
        labels.append(centre.labels[own])
    standardised = np.concatenate(features).astype(np.float32)
    parts = (standardised, np.concatenate(labels), numbers)
    return Images(*map(torch.from_numpy, parts))


# --- files ----------------------------------------------------------------------------------------


def _fetch(name: str, folder: Path) -> None:
    (folder / name).mkdir()
    for file in map(file_of, CENTRES):
        with urlopen(f"{SOURCE}/{file}", timeout=_SECONDS) as answer:
            (folder / name / file).write_bytes(answer.read())


def _verify(path: Path, checksum: str) -> None:
    fault = f"is not the official file (its SHA-256 begins {checksum[:12]})"
    if not path.is_file():
        fault = "missing"
    elif hashlib.sha256(path.read_bytes()).hexdigest() == checksum:
        return
    raise FedstageError(f"{path}: {fault}; delete {path.parent} to download the files again")
