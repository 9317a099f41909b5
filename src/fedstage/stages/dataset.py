"""Stage `dataset`: read a data set into arrays, once for all recipes that use it."""

from pathlib import Path
from typing import Any

import torch

from fedstage.data.datasets import load
from fedstage.data.datasets.images import Dataset, Images, pixel_statistics
from fedstage.data.folder import default_folder
from fedstage.plan.inputs import DatasetInputs
from fedstage.settings.data import Data, DataOption
from fedstage.settings.data_sets import ImageSet
from fedstage.stages import Made
from fedstage.storage.files import save_json
from fedstage.storage.raw_files import unchanged
from fedstage.storage.tensors import save_tensors
from fedstage.training.public_images import change_once


def dataset(
    recipe: DataOption,
    read: DatasetInputs[Path],
    made: Made,
    *,
    folder: Path | None = None,
    server_validation: Path | None = None,
    test_own: Path | None = None,
) -> None:
    """Write the training, test and held-out arrays of a data set, and its info.

    Parameters
    ----------
    folder : Path, optional
        The data folder; by default the environment variable FEDSTAGE_DATA.
    train, test : Path
        Outputs: `images` uint8 [n, C, H, W], or another kind of
        `fedstage.data.datasets.images.Images`; `labels` int64 [n] and, where the data set has them,
        `clients` int64 [n].
    held_out : Path
        Output: `images` uint8 [m, C, H, W], changed by `held_out_augmentation` of the settings.
    server_validation, test_own : Path, optional
        Outputs: as `test`; `test_own` as each client prepares its own samples, empty where that
        makes no difference.
    info : Path
        Output: name, number and names of classes, shape of a sample (of images [C, H, W]), mean and
        standard deviation [C] of the training pixels scaled to 0..1 (empty if samples are not
        images), and the number of samples of each part. Where the data set has them: the names of
        clients, the features, and the columns that were left out because they are constant.

    Raises
    ------
    FedstageError
        If raw files are not the planned ones, or change while they are read.
    """
    chosen, folder = recipe.data, folder or default_folder()
    with unchanged(chosen, folder, read.raw):
        loaded = load(chosen, folder)
    save_tensors(made["train"], _tensors(loaded.train))
    save_tensors(made["test"], _tensors(loaded.test))
    save_tensors(made["held_out"], {"images": _public(chosen, loaded.held_out)})
    if server_validation is not None:
        save_tensors(server_validation, _tensors(loaded.server_validation))
    if test_own is not None:
        save_tensors(test_own, _tensors(loaded.test_own or loaded.test.none))
    save_json(made["info"], describe(chosen.name, loaded))


def describe(name: str, data: Dataset) -> dict[str, Any]:
    """Return the info of a data set."""
    pixels = data.train.images.dtype == torch.uint8
    mean, deviation = pixel_statistics(data.train.images) if pixels else ([], [])
    named = {key: getattr(data, key) for key in ("client_names", "feature_names", "constant")}
    return {
        "name": name,
        "classes": len(data.class_names),
        "class_names": list(data.class_names),
        "shape": list(data.train.images.shape[1:]),
        "mean": mean,
        "std": deviation,
        "train": len(data.train.labels),
        "test": len(data.test.labels),
        "held_out": len(data.held_out),
        "server_validation": len(data.server_validation.labels),
        **{key: list(names) for key, names in named.items() if names is not None},
    }


def _public(settings: Data, images: torch.Tensor) -> torch.Tensor:
    """Return the held-out images as teachers and students see them."""
    if not isinstance(settings, ImageSet) or settings.held_out_augmentation == "none":
        return images
    return change_once(images, settings.held_out_augmentation, settings.split_seed)


def _tensors(part: Images) -> dict[str, torch.Tensor]:
    tensors = {name: getattr(part, name) for name in ("images", "labels", "clients", "starts")}
    return {name: value for name, value in tensors.items() if value is not None}
