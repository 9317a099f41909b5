"""Fed-ISIC2019 in FLamby's preprocessed layout (Ogier du Terrail et al., NeurIPS 2022).

    ISIC_2019_Training_Input_preprocessed/NAME.jpg    the shorter side has 224 pixels
    train_test_split                                  CSV: image, target, center, fold

The table is a file of FLamby's repository. The middle of each picture is used, for both training
and testing; FLamby crops, rotates and scales training pictures at random.
"""

from pathlib import Path

import pandas as pd
import torch

from fedstage.data.datasets.decoding import Decoder
from fedstage.data.datasets.flamby import read_columns
from fedstage.data.datasets.images import Dataset, Images
from fedstage.data.datasets.splits import Rows, choose_rows
from fedstage.errors import FedstageError
from fedstage.settings.data import Isic2019
from fedstage.storage.files import read_bytes
from fedstage.storage.raw_files import place_of

CLASSES = ("MEL", "NV", "BCC", "AK", "BKL", "DF", "VASC", "SCC")
_FOLDS = ("train", "test")


def load(settings: Isic2019, folder: Path) -> Dataset:
    """Read the pictures below the data folder.

    Raises
    ------
    FedstageError
        If a file is missing or invalid, a picture is smaller than the crop, or there are fewer
        samples than a size.
    """
    path, pictures = (place_of(settings, folder, part) for part in ("table", "pictures"))
    labels, centres = (list(map(str, range(n))) for n in (len(CLASSES), settings.centres))
    allowed = {"image": [], "target": labels, "center": centres, "fold": _FOLDS}
    table = read_columns(path, allowed, pictures.parent.name)
    folds = [table[table["fold"] == fold] for fold in _FOLDS]
    for fold, part in zip(_FOLDS, folds, strict=True):
        if part.empty:
            raise FedstageError(f"{path}: fold = {fold}: no picture has it")
    every = pd.concat(folds)
    paths = [pictures.parent / f"{name}.jpg" for name in every["image"]]
    numbers = torch.from_numpy(every[["target", "center"]].astype("int64").to_numpy())
    decoder = Decoder(crop=settings.crop)

    def samples(own: Rows) -> Images:
        chosen = [paths[row] for row in own.tolist()]
        encoded = list(map(str, chosen)), lambda number: read_bytes(chosen[number])
        labels, centres = numbers[own].unbind(1)
        return Images(decoder.decode_all(len(own), [encoded]), labels, centres)

    return choose_rows(settings, *map(len, folds)).dataset(samples, CLASSES)
