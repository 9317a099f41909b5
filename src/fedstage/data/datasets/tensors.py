"""A user's own samples as tensors in safetensors files."""

import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load as parsed

from fedstage.data.datasets.images import Dataset
from fedstage.data.datasets.splits import Labelled, Named
from fedstage.data.excerpts import listed
from fedstage.errors import FedstageError
from fedstage.settings.data import OwnTensors
from fedstage.storage.files import read_bytes
from fedstage.storage.raw_files import folder_of
from fedstage.weights import Weights

_LOGGER = logging.getLogger(__name__)

_MOST = 100_000  # classes, for which a model has a row each, or clients
_MOST_BANDS = 4  # of an image whose channels are last


def load(settings: OwnTensors, folder: Path) -> Dataset:
    """Read the tensors below the data folder; classes and clients keep their numbers.

    Raises
    ------
    FedstageError
        If a file is missing or damaged, a tensor is not what it must be, or there are fewer samples
        than a size.
    """
    place, fraction = folder_of(settings, folder), settings.test_fraction
    train = _read(place / "train.safetensors")
    if settings.are_images != is_image(train["x"]):
        raise FedstageError(f"data = {settings.name}: {place} has no {settings.samples}")
    parts, test = [train], place / "test.safetensors"
    if fraction is not None and test.is_file():
        hint = "leave out the fraction, or take the file away"
        raise FedstageError(f"data.test_fraction = {fraction:g}: {test} is there; {hint}")
    if test.is_file() or (fraction is None and settings.division is None):
        parts.append(_read(test, train["x"]))
    used = {"train", "test", *(["public"] * bool(settings.held_out))}
    if others := sorted(path.name for path in place.glob("*.safetensors") if path.stem not in used):
        _LOGGER.warning("%s: files that are not read: %s", place, listed(others))
    every = {name: torch.cat([part[name] for part in parts]) for name in ("x", "y")}
    x, count = every["x"], len(every["y"])
    clients = _numbered(place, train, "clients") if "clients" in train else None
    rows = Labelled(_numbered(place, every, "y"), clients, None, len(train["y"]), np.arange(count))
    rows = rows.drawn(settings)
    public, path = None, place / "public.safetensors"
    if settings.held_out and path.is_file():
        public = _read(path, train["x"])["x"]
        if len(public) != settings.held_out:
            raise FedstageError(f"{path}: has {len(public)} samples: set this as data.held_out")
        settings = settings.model_copy(update={"held_out": 0})
    dataset = rows.dataset(rows.split(settings), lambda own: x[rows.order[own]])
    return dataset if public is None else replace(dataset, held_out=public)


def _numbered(where: Path, tensors: Weights, name: str) -> Named:
    """Return numbers as positions among all numbers up to the highest."""
    highest = int(tensors[name].max())
    if highest >= _MOST:
        raise FedstageError(f"{where}: {name}: {highest}: must be below {_MOST:,}; count from 0")
    return Named(tensors[name].numpy(), tuple(map(str, range(highest + 1))))


def _read(path: Path, like: torch.Tensor | None = None) -> Weights:
    try:
        tensors: Weights = parsed(read_bytes(path))
    except SafetensorError as error:
        raise FedstageError(f"{path}: not a safetensors file: {error}") from None
    needed = ["x"] if path.stem == "public" else ["x", "y"]
    if not {*needed} <= tensors.keys():
        raise FedstageError(f"{path}: needs tensors {' and '.join(needed)}, has {sorted(tensors)}")
    known = {*needed} | ({"clients"} if path.stem == "train" else {"y"})
    if others := sorted(tensors.keys() - known):
        _LOGGER.warning("%s: tensors that are not read: %s", path, listed(others))
    check(str(path), tensors, like)
    return tensors


def is_image(x: torch.Tensor) -> bool:
    """Whether samples are images."""
    return x.dtype == torch.uint8 and x.ndim == 4


def check(where: str, tensors: Weights, like: torch.Tensor | None = None) -> None:
    """Refuse tensors that are no samples `x`, or not `like` others, with integers for each."""
    x = tensors["x"]
    allowed = "images, uint8 [n, C, H, W], or finite features, float32 [n, ...]"
    fits = is_image(x) or (x.dtype == torch.float32 and x.ndim > 1 and x.isfinite().all())
    if is_image(x) and x.shape[1] > _MOST_BANDS >= x.shape[3]:
        fits = False  # [n, H, W, C]
    if like is not None:
        allowed = f"{like.dtype} {['n', *like.shape[1:]]}, as for training"
        fits = fits and (x.dtype, x.shape[1:]) == (like.dtype, like.shape[1:])
    if not fits or not x.numel():
        raise FedstageError(f"{where}: x: {x.dtype} {list(x.shape)}: must be {allowed}")
    for name in tensors.keys() - {"x"}:
        own = tensors[name]
        if own.dtype != torch.int64 or own.shape != x.shape[:1] or own.min() < 0:
            shown = f"{where}: {name}: {own.dtype} {list(own.shape)}"
            raise FedstageError(f"{shown}: must be int64 [{len(x)}], from 0")
