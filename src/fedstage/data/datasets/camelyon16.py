"""Fed-Camelyon16 in FLamby's preprocessed layout (Ogier du Terrail et al., NeurIPS 2022).

    tumor_001.tif.npy, normal_001.tif.npy, test_001.tif.npy, ...    float32 [tiles, features]
    metadata.csv                                       slide_name, label, hospital_corrected

The table is a file of FLamby's repository. As in FLamby, slides called ``test`` are for testing,
and two withdrawn slides are left out.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from fedstage.data.datasets.flamby import read_rows
from fedstage.data.datasets.images import Dataset, Images
from fedstage.errors import FedstageError
from fedstage.randomness import numpy_generator
from fedstage.settings.data import Camelyon16
from fedstage.storage.raw_files import folder_of, place_of, raw_files

CLASSES = ("normal", "tumor")
WITHDRAWN = ("normal_086", "test_049")
_SUFFIX = ".tif"
_COLUMNS = ("slide_name", "label", "hospital_corrected")


class _Slide(NamedTuple):
    name: str
    path: Path
    label: int
    centre: int


def load(settings: Camelyon16, folder: Path) -> Dataset:
    """Read the slides below the data folder, in the order of their names.

    Raises
    ------
    FedstageError
        If a file is missing or invalid.
    """
    place = folder_of(settings, folder)
    slides = _find(place_of(settings, folder, "table"), raw_files(settings, folder)["slides"])
    test = [slide for slide in slides if slide.name.startswith("test")]
    train = [slide for slide in slides if not slide.name.startswith("test")]
    for name, part in (("test_*", test), ("normal_* or tumor_*", train)):
        if not part:
            raise FedstageError(f"{place}: has no slide {name}{_SUFFIX}.npy")
    bags = _bags(train, settings.max_tiles, None)
    return Dataset(
        train=bags,
        test=_bags(test, settings.max_tiles, bags.images.shape[1]),
        held_out=bags.none.images,
        server_validation=bags.none,
        class_names=CLASSES,
    )


def _find(table: Path, paths: Sequence[Path]) -> list[_Slide]:
    """Return the slides that have a file; the table may have more."""
    rows = {
        row["slide_name"].removesuffix(_SUFFIX).lower(): _label_and_centre(table, line, row)
        for line, row in read_rows(table, _COLUMNS, "the features")
    }
    slides = []
    for path in paths:
        name = path.name.split(".")[0].lower()
        if name in WITHDRAWN:
            continue
        if name not in rows:
            raise FedstageError(f"{table}: slide_name: has no {name}{_SUFFIX}")
        slides.append(_Slide(name, path, *rows[name]))
    return slides


def _label_and_centre(path: Path, line: int, row: dict[str, str]) -> tuple[int, int]:
    numbers = {"0": 0, "0.0": 0, "1": 1, "1.0": 1}
    try:
        return numbers[row["label"]], numbers[row["hospital_corrected"]]
    except KeyError:
        fault = f"{path}: line {line}: label and hospital_corrected: must be 0 or 1"
        raise FedstageError(fault) from None


def _bags(slides: Sequence[_Slide], most: int, features: int | None) -> Images:
    """Return the slides as bags of tiles, all with the same number of features."""
    parts = []
    for slide in slides:
        parts.append(_tiles(slide, most))
        found = parts[-1].shape[1]
        features = features or found
        if found != features:
            fault = f"{found} features a tile, other slides have {features}"
            raise FedstageError(f"{slide.path}: {fault}")
    starts = np.cumsum([0, *map(len, parts)])
    return Images(
        torch.from_numpy(np.concatenate(parts)),
        torch.tensor([slide.label for slide in slides], dtype=torch.int64),
        torch.tensor([slide.centre for slide in slides], dtype=torch.int64),
        torch.from_numpy(starts),
    )


def _tiles(slide: _Slide, most: int) -> NDArray[np.float32]:
    """Return the features of a slide's tiles: a sample of `most` in order, or all if fewer."""
    try:
        tiles = np.load(slide.path, allow_pickle=False, mmap_mode="r")
    except (OSError, ValueError, EOFError) as error:
        raise FedstageError(f"{slide.path}: is not a NumPy array ({error})") from None
    if tiles.ndim != 2 or not len(tiles) or tiles.dtype.kind != "f":
        raise FedstageError(
            f"{slide.path}: {tiles.dtype} {list(tiles.shape)}: must be floating-point "
            "[tiles, features], with at least one tile"
        )
    if len(tiles) > most:
        order = numpy_generator(0, "dataset", slide.name).permutation(len(tiles))
        return np.ascontiguousarray(tiles[np.sort(order[:most])], np.float32)
    return np.array(tiles, np.float32)
