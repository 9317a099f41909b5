"""Fed-Camelyon16 in FLamby's preprocessed layout (Ogier du Terrail et al., NeurIPS 2022).

    tumor_001.tif.npy, normal_001.tif.npy, test_001.tif.npy, ...    float32 [tiles, features]
    metadata.csv                                       slide_name, label, hospital_corrected

The table is a file of FLamby's repository. As in FLamby, slides called ``test`` are for testing,
and two withdrawn slides are left out.
"""

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from fedstage.data.datasets.flamby import read_columns
from fedstage.data.datasets.images import Dataset, Images
from fedstage.errors import FedstageError
from fedstage.randomness import numpy_generator
from fedstage.settings.data import Camelyon16
from fedstage.storage.raw_files import folder_of, place_of, raw_files

CLASSES = ("normal", "tumor")
WITHDRAWN = ("normal_086", "test_049")
_SUFFIX = ".tif"
_NUMBERS = ("0", "0.0", "1", "1.0")


def load(settings: Camelyon16, folder: Path) -> Dataset:
    """Read the slides below the data folder, in the order of their names.

    Raises
    ------
    FedstageError
        If a file is missing or invalid.
    """
    place, path = folder_of(settings, folder), place_of(settings, folder, "table")
    allowed = {"slide_name": (), "label": _NUMBERS, "hospital_corrected": _NUMBERS}
    table = read_columns(path, allowed, "the features")
    names = table["slide_name"].str.removesuffix(_SUFFIX).str.lower()
    numbers = table[["label", "hospital_corrected"]].astype(float).astype("int64").to_numpy()
    known = dict(zip(names, numbers, strict=True))
    slides = [
        (file.name.split(".")[0].lower(), file) for file in raw_files(settings, folder)["slides"]
    ]
    slides = [(name, file) for name, file in slides if name not in WITHDRAWN]
    if lacking := sorted({name for name, _ in slides} - known.keys()):
        raise FedstageError(f"{path}: slide_name: has no {lacking[0]}{_SUFFIX}")
    parts: list[Images] = []
    for tested, form in ((False, "normal_* or tumor_*"), (True, "test_*")):
        own = [(name, file) for name, file in slides if name.startswith("test") == tested]
        if not own:
            raise FedstageError(f"{place}: has no slide {form}{_SUFFIX}.npy")
        tiles = [_tiles(name, file, settings.max_tiles) for name, file in own]
        starts = torch.tensor([0, *map(len, tiles)]).cumsum(0)
        labels, centres = torch.from_numpy(np.stack([known[name] for name, _ in own])).unbind(1)
        features = {part.shape[1] for part in tiles} | {part.images.shape[1] for part in parts}
        if len(features) > 1:
            raise FedstageError(f"{place}: slides have tiles of {sorted(features)} features")
        parts.append(Images(torch.from_numpy(np.concatenate(tiles)), labels, centres, starts))
    train, test = parts
    return Dataset(train, test, train.none.images, train.none, CLASSES)


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
    return np.array(tiles, np.float32)
