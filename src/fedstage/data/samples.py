"""What several stages read: settings of a line, samples of a client, models with their notes."""

from collections import defaultdict
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn

from fedstage.data.bags import Bags, Samples
from fedstage.errors import FedstageError
from fedstage.models.build import build
from fedstage.plan.sharing import SCHEMA_VERSION, digest
from fedstage.settings.base import Settings
from fedstage.settings.numerics import Numerics
from fedstage.settings.validation import validate
from fedstage.storage.files import load_json
from fedstage.storage.tensors import Weights, load_table, load_tensors
from fedstage.storage.yaml_files import load_yaml
from fedstage.training.passes import PLAIN, arrange

S = TypeVar("S", bound=Settings)

#: The settings that say how many samples have a role.
_FRACTIONS = {"validation": "validation", "aggregator": "aggregator_fraction"}


def read_line(path: Path, kind: type[S]) -> S:
    """Read what stage `line` wrote.

    Raises
    ------
    FedstageError
        If the file is not a line of this schema version.
    """
    try:
        content = load_yaml(path)
    except OSError as error:
        raise FedstageError(f"{path}: {error.strerror}") from None
    if content.get("schema") != SCHEMA_VERSION:
        found = content.get("schema")
        raise FedstageError(f"{path}: schema = {found!r}: this version reads {SCHEMA_VERSION}")
    if content.get("digest") != digest(content.get("settings")):
        raise FedstageError(f"{path}: digest = {content.get('digest')!r}: altered; delete the file")
    return validate(kind, content.get("settings"), str(path))


def read_info(path: Path) -> dict[str, Any]:
    """Read what a data set is: shape [C, H, W], classes, mean and std."""
    return load_json(path)


def read_samples(path: Path, role: str, client: int | None = None) -> torch.Tensor:
    """Return the sample numbers (int64) of a role, of one client or of all.

    Raises
    ------
    FedstageError
        If there are none.
    """
    return read_owned(path, role, client)[0]


def read_owned(
    path: Path, role: str, client: int | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the sample numbers (int64) of a role, of one client or of all, and whose they are.

    Raises
    ------
    FedstageError
        If there are none.
    """
    table = load_table(path, ["client", "sample", "role"])
    # Not to_numpy: it imports pandas, which costs a second.
    column = {name: table[name].to_pylist() for name in table.column_names}
    chosen = [
        (sample, owner)
        for owner, sample, part in zip(
            column["client"], column["sample"], column["role"], strict=True
        )
        if part == role and client in (None, owner)
    ]
    if not chosen:
        whose = "any client" if client is None else f"client {client}"
        hint = f"; set {_FRACTIONS[role]} above 0" if role in _FRACTIONS else ""
        raise FedstageError(f"{path}: no sample of role {role!r} for {whose}{hint}")
    samples, owners = torch.tensor(chosen, dtype=torch.int64).unbind(1)
    return samples, owners


def read_counts(histogram: Path) -> dict[int, dict[int, int]]:
    """Return the training samples of every client and class."""
    counts: dict[int, dict[int, int]] = defaultdict(dict)
    for row in load_table(histogram, ["client", "role", "label", "samples"]).to_pylist():
        if row["role"] == "train":
            counts[row["client"]][row["label"]] = row["samples"]
    return counts


@lru_cache(maxsize=4)
def _resident(path: Path, version: tuple[int, int, int]) -> Weights:
    """Read a data set's arrays once in the life of a warm worker; nobody writes to them."""
    return load_tensors(path)[0]


def read_images(
    path: Path, samples: torch.Tensor | None, device: torch.device
) -> tuple[Samples, torch.Tensor | None]:
    """Return images and labels (None where there are none), all or the given samples."""
    if not path.exists():
        raise FedstageError(f"{path}: no such file")
    status = path.stat()
    tensors = _resident(path.resolve(), (status.st_mtime_ns, status.st_size, status.st_ino))
    if "images" not in tensors:
        raise FedstageError(f"{path}: has no tensor 'images', only {sorted(tensors)}")
    images, labels = _samples_in(tensors), tensors.get("labels")
    if samples is not None:
        images = images[samples]
        labels = None if labels is None else labels[samples]
    return images.to(device), None if labels is None else labels.to(device)


def _samples_in(tensors: Weights) -> Samples:
    """Return the samples of a file: where it says where bags start, its images are instances."""
    if "starts" in tensors:
        return Bags(tensors["images"], tensors["starts"])
    return tensors["images"]


def read_public(path: Path, about: dict[str, Any], device: torch.device) -> Samples:
    """Return public images, which a model of the clients' data must be able to see.

    Raises
    ------
    FedstageError
        If their shape is another than that of the clients' images.
    """
    images, _ = read_images(path, None, device)
    shape = list(images.shape[1:])
    if shape != about["shape"]:
        raise FedstageError(
            f"{path}: images of shape {shape}: must be {about['shape']} as the clients' are; "
            "set public.image_size, or take another public data set"
        )
    return images


def read_labelled(
    path: Path, samples: torch.Tensor | None, device: torch.device
) -> tuple[Samples, torch.Tensor]:
    """Return images and labels of a labelled set.

    Raises
    ------
    FedstageError
        If the file has no labels.
    """
    images, labels = read_images(path, samples, device)
    if labels is None:
        raise FedstageError(f"{path}: has no labels; a labelled data set is needed here")
    return images, labels


def new_model(
    settings: Any, info: dict[str, Any], device: torch.device, numerics: Numerics = PLAIN
) -> nn.Module:
    """Return a model of the data set's shape and classes, to be filled with weights."""
    model = build(settings, tuple(info["shape"]), int(info["classes"])).to(device)
    return arrange(model, numerics)


def fill_model(model: nn.Module, weights: Weights, path: Path) -> None:
    """Load weights into a model.

    Raises
    ------
    FedstageError
        If names or shapes do not fit.
    """
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        detail = " ".join(str(error).split())
        raise FedstageError(f"{path}: does not fit the model: {detail}") from None


def state_of(model: nn.Module) -> Weights:
    """Return a copy of a model's weights and buffers on the CPU."""
    return {name: value.detach().cpu().clone() for name, value in model.state_dict().items()}


def parameters_of(model: nn.Module, weights: Weights) -> Weights:
    """Return the part of `weights` that are parameters, in the model's order."""
    return {name: weights[name] for name, _ in model.named_parameters()}
