"""Data sets of FLamby (Ogier du Terrail et al., NeurIPS 2022), whose centres are the clients.

**Fed-Heart-Disease** (Janosi, Steinbrunn, Pfisterer and Detrano 1988, CC BY 4.0): the UCI files of
four centres, prepared as FLamby does. Rows and columns are counted from 0.

1. Slope, ca and thal (columns 10 to 12) are dropped, then each row with a missing value.
2. The label is 1 where num (column 13) is not 0.
3. In each centre 66 % of the rows are for training: scikit-learn's split with `random_state` 43,
   stratified unless a class has two rows or fewer.
4. Chest pain and the resting electrocardiogram are one-hot coded without their first level.
5. (x - mean) / (deviation + 1e-9), with mean and sample deviation (n - 1) of the training rows.

**Fed-ISIC2019** in FLamby's preprocessed layout. The middle of each picture is used, for both
training and testing; FLamby crops, rotates and scales training pictures at random.

    ISIC_2019_Training_Input_preprocessed/NAME.jpg    the shorter side has 224 pixels
    train_test_split                                  CSV: image, target, center, fold

**Fed-Camelyon16** in FLamby's preprocessed layout. As in FLamby, slides called ``test`` are for
testing, and two withdrawn slides are left out.

    tumor_001.tif.npy, normal_001.tif.npy, test_001.tif.npy, ...    float32 [tiles, features]
    metadata.csv                                       slide_name, label, hospital_corrected

The tables are files of FLamby's repository.
"""

import logging
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeAlias
from urllib.request import urlopen

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from fedstage.data.datasets.decoding import Decoder
from fedstage.data.datasets.images import Dataset, Images
from fedstage.data.datasets.published import fetch, read_columns
from fedstage.data.datasets.splits import Rows, choose_rows
from fedstage.data.excerpts import listed
from fedstage.errors import FedstageError
from fedstage.randomness import numpy_generator
from fedstage.settings.data import Camelyon16, HeartDisease, Isic2019
from fedstage.storage.files import read_bytes
from fedstage.storage.raw_files import folder_of, place_of, raw_files

_LOGGER = logging.getLogger(__name__)

_TAKEN = "; take it from FLamby and put it next to the samples"


def load(settings: HeartDisease | Isic2019 | Camelyon16, folder: Path) -> Dataset:
    """Read a data set below the data folder.

    Raises
    ------
    FedstageError
        If a file is missing or invalid, a download fails, a picture is smaller than the crop, or
        there are fewer samples than a size.
    """
    if isinstance(settings, HeartDisease):
        return _heart_disease(folder / settings.folder)
    if isinstance(settings, Isic2019):
        return _isic(settings, folder)
    return _camelyon(settings, folder)


# --- Fed-Heart-Disease ----------------------------------------------------------------------------

#: The centres in the order of their numbers, and the SHA-256 of their files.
CENTRES = {
    "cleveland": "a74b7efa387bc9d108d7d0115d831fe9b414b29ae7124f331b622b4efa0427c8",
    "hungarian": "d1ad108f785768cd3d7e82dc522e6f5a61eea93cccfb3a46ee8076f73fc3d796",
    "switzerland": "834a405ccf5b66ab4056bb77794adc8df0b7125186454c0a1d002d33c6c3b314",
    "va": "e7c93d8d0d2acdadfa4c5e8de768e2191e7f618b952e29623f1f0d5949ff6b8f",
}
SOURCE = "https://archive.ics.uci.edu/ml/machine-learning-databases/heart-disease"
_DROPPED, _LABEL = [10, 11, 12], 13
_NUMERIC = (0, 1, 3, 4, 5, 7, 8, 9)  # the others are coded, or the label
_CODED = {2: (2, 3, 4), 6: (1, 2)}  # without the first level
_TRAIN, _SPLIT_SEED = 0.66, 43
_SMALLEST = 3  # rows of a class, for a stratified split
_EPSILON = 1e-9
_SECONDS = 60  # until an unanswered download fails

Values: TypeAlias = NDArray[np.float64]


class Centre(NamedTuple):
    """A centre's patients: features [n, 13], labels [n], and ascending row numbers of each part."""

    features: Values
    labels: Rows
    lines: Rows  #: of each row in the file
    train: Rows
    test: Rows


def _heart_disease(place: Path) -> Dataset:
    checksums = {f"{place.name}/{file_of(name)}": checksum for name, checksum in CENTRES.items()}
    fetch(place, partial(_download, place.name), SOURCE, checksums)
    return as_dataset([read_centre(place / file_of(centre)) for centre in CENTRES])


def _download(name: str, folder: Path) -> None:
    (folder / name).mkdir()
    for file in map(file_of, CENTRES):
        with urlopen(f"{SOURCE}/{file}", timeout=_SECONDS) as answer:
            (folder / name / file).write_bytes(answer.read())


def file_of(centre: str) -> str:
    """Return the official name of a centre's file."""
    return f"processed.{centre}.data"


def as_dataset(centres: Sequence[Centre]) -> Dataset:
    """Return the centres as a data set whose clients are the centres."""
    own = [_statistics(centre.features[centre.train]) for centre in centres]
    pooled = _statistics(np.concatenate([centre.features[centre.train] for centre in centres]))
    tests, everywhere = [centre.test for centre in centres], [pooled] * len(centres)
    train = _standardised(centres, [centre.train for centre in centres], own)
    test, test_own = (_standardised(centres, tests, known) for known in (everywhere, own))
    names = ("no disease", "disease")
    return Dataset(train, test, train.none.images, train.none, names, test_own)


def read_centre(path: Path) -> Centre:
    """Read and split a centre's file: 14 columns separated by commas, ``?`` where unknown."""
    from sklearn.model_selection import train_test_split  # slow to import

    table = pd.read_csv(path, header=None, na_values="?").drop(columns=_DROPPED).dropna()
    labels = np.asarray(table[_LABEL] != 0).astype(np.int64)
    coded = [table[column] == level for column, levels in _CODED.items() for level in levels]
    features = np.column_stack([table[list(_NUMERIC)], *coded]).astype(np.float64)
    stratified = min(np.bincount(labels, minlength=2)) >= _SMALLEST
    train, test = train_test_split(
        np.arange(len(labels)), train_size=_TRAIN, test_size=1 - _TRAIN, random_state=_SPLIT_SEED,
        stratify=labels if stratified else None,
    )  # fmt: skip
    return Centre(features, labels, table.index.to_numpy(np.int64), np.sort(train), np.sort(test))


def _statistics(rows: Values) -> tuple[Values, Values]:
    return rows.mean(axis=0), rows.std(axis=0, ddof=1) + _EPSILON


def _standardised(
    centres: Sequence[Centre], rows: Sequence[Rows], statistics: Sequence[tuple[Values, Values]]
) -> Images:
    """Return rows of all centres, standardised, centre by centre."""
    parts = list(zip(centres, rows, statistics, strict=True))
    features = np.concatenate([
        (centre.features[own] - mean) / deviation for centre, own, (mean, deviation) in parts
    ])  # fmt: skip
    labels = np.concatenate([centre.labels[own] for centre, own, _ in parts])
    clients = np.repeat(np.arange(len(centres)), [len(own) for own in rows])
    return Images(*map(torch.from_numpy, (features.astype(np.float32), labels, clients)))


# --- Fed-ISIC2019 ---------------------------------------------------------------------------------

LESIONS = ("MEL", "NV", "BCC", "AK", "BKL", "DF", "VASC", "SCC")


def _isic(settings: Isic2019, folder: Path) -> Dataset:
    path, pictures = (place_of(settings, folder, part) for part in ("table", "pictures"))
    labels, centres = (list(map(str, range(n))) for n in (len(LESIONS), settings.centres))
    allowed = {"image": [], "target": labels, "center": centres, "fold": ["train", "test"]}
    table = read_columns(path, allowed, _TAKEN)
    folds = [table[table["fold"] == fold] for fold in ("train", "test")]
    if not all(map(len, folds)):
        raise FedstageError(f"{path}: fold: no picture is for training, or none for testing")
    every = pd.concat(folds)
    if every["image"].duplicated().any():
        twice = every["image"][every["image"].duplicated()].iloc[0]
        raise FedstageError(f"{path}: image: {twice} is there twice")
    paths = [pictures.parent / f"{name}.jpg" for name in every["image"]]
    numbers = torch.from_numpy(every[["target", "center"]].astype("int64").to_numpy())
    decoder = Decoder(crop=settings.crop)

    def samples(own: Rows) -> Images:
        chosen = [paths[row] for row in own.tolist()]
        encoded = list(map(str, chosen)), lambda number: read_bytes(chosen[number])
        return Images(decoder.decode_all(len(own), [encoded]), *numbers[own].unbind(1))

    return choose_rows(settings, *map(len, folds)).dataset(samples, LESIONS)


# --- Fed-Camelyon16 -------------------------------------------------------------------------------

WITHDRAWN = ("normal_086", "test_049")
_NUMBERS = ("0", "0.0", "1", "1.0")


def _camelyon(settings: Camelyon16, folder: Path) -> Dataset:
    """Read the slides in the order of their names."""
    place, path = folder_of(settings, folder), place_of(settings, folder, "table")
    allowed = {"slide_name": (), "label": _NUMBERS, "hospital_corrected": _NUMBERS}
    table = read_columns(path, allowed, _TAKEN)
    names = table["slide_name"].str.removesuffix(".tif").str.lower()
    numbers = table[["label", "hospital_corrected"]].astype(float).astype("int64").to_numpy()
    known = dict(zip(names, numbers, strict=True))
    if twice := sorted(names[names.duplicated()]):
        raise FedstageError(f"{path}: slide_name: {twice[0]} is there twice")
    files: dict[str, Path] = {}
    for file in raw_files(settings, folder)["slides"]:
        name = file.name.split(".")[0].lower()
        if name in files:
            raise FedstageError(
                f"{file}: is of the same slide as {files[name].name}; take one away"
            )
        files[name] = file
    slides = {name: file for name, file in files.items() if name not in WITHDRAWN}
    if lacking := sorted(slides.keys() - known.keys()):
        raise FedstageError(f"{path}: slide_name: has no {lacking[0]}.tif")
    if absent := sorted(known.keys() - files.keys() - {*WITHDRAWN}):
        _LOGGER.warning("%s: has no tiles of %d slides in the table: %s",
                        place, len(absent), listed(absent))  # fmt: skip
    bags = {name: _tiles(name, file, settings.max_tiles) for name, file in slides.items()}
    tested = [[name for name in bags if name.startswith("test") == part] for part in (False, True)]
    if not all(tested) or len({tiles.shape[1] for tiles in bags.values()}) > 1:
        must = "normal_* or tumor_*, and test_*, with tiles of as many features"
        raise FedstageError(f"{place}: must have slides {must}")

    def part(own: Sequence[str]) -> Images:
        starts = torch.tensor([0, *(len(bags[name]) for name in own)]).cumsum(0)
        labels, centres = torch.from_numpy(np.stack([known[name] for name in own])).unbind(1)
        tiles = torch.from_numpy(np.concatenate([bags[name] for name in own]))
        return Images(tiles, labels, centres, starts)

    train, test = map(part, tested)
    return Dataset(train, test, train.none.images, train.none, ("normal", "tumor"))


def _tiles(name: str, path: Path, most: int) -> NDArray[np.float32]:
    """Return the features of a slide's tiles: a sample of `most` in order, or all if fewer."""
    try:
        tiles = np.load(path, allow_pickle=False, mmap_mode="r")
    except (OSError, ValueError, EOFError) as error:
        raise FedstageError(f"{path}: is not a NumPy array ({error})") from None
    if tiles.ndim != 2 or not len(tiles) or tiles.dtype.kind != "f":
        must = "must be floating-point [tiles, features], with at least one tile"
        raise FedstageError(f"{path}: {tiles.dtype} {list(tiles.shape)}: {must}")
    if len(tiles) > most:
        order = numpy_generator(0, "dataset", name).permutation(len(tiles))
        tiles = tiles[np.sort(order[:most])]
    if not np.isfinite(tiles).all():
        raise FedstageError(f"{path}: must be finite")
    return np.array(tiles, np.float32)
