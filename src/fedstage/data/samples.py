"""Reading samples and their tables in stages: for a role, a client, or a public data set."""

import logging
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch.utils.dlpack import from_dlpack

from fedstage.data.bags import Bags, Samples
from fedstage.errors import FedstageError
from fedstage.storage.files import load_json
from fedstage.storage.tables import load_table
from fedstage.storage.tensors import map_tensors
from fedstage.weights import Weights

_LOGGER = logging.getLogger(__name__)

#: The setting of a role's share of the samples.
_FRACTIONS = {"validation": "validation", "aggregator": "aggregator_fraction"}

Info = Mapping[str, Any]
Version = tuple[int, int, int]


def read_info(path: Path) -> dict[str, Any]:
    """Read the description of a data set: shape [C, H, W], classes, mean and std.

    With models that are trained in part it also has their `base`, the tensors that never change.
    """
    if path.suffix != ".safetensors":
        return load_json(path)
    base, metadata = _base(path, version_of(path))
    return {**metadata["info"], "base": base}


def read_samples(path: Path, role: str, client: int | None = None) -> torch.Tensor:
    """Return the sample indices (int64) of a role, of one client or of all, as `read_owned`."""
    return read_owned(path, role, client)[0]


def read_owned(
    path: Path, role: str, client: int | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the sample indices (int64) of a role, of one client or of all, and their clients.

    Raises
    ------
    FedstageError
        If there are none.
    """
    owners, samples, coded, roles = _partition(path.absolute(), version_of(path))
    chosen = coded == (roles.index(role) if role in roles else -1)
    if client is not None:
        chosen &= owners == client
    if not chosen.any():
        whose = "any client" if client is None else f"client {client}"
        hint = f"; set {_FRACTIONS[role]} above 0" if role in _FRACTIONS else ""
        raise FedstageError(f"{path}: no sample of role {role!r} for {whose}{hint}")
    return samples[chosen], owners[chosen]


def version_of(path: Path) -> Version:
    """Return a version that changes with the file; raise FedstageError if there is no file."""
    if not path.exists():
        raise FedstageError(f"{path}: no such file")
    status = path.stat()
    return status.st_mtime_ns, status.st_size, status.st_ino


@lru_cache(maxsize=2)
def _partition(
    path: Path, version: Version
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, list[str]]:
    """Read clients, samples and roles of a partition once in the life of a warm worker.

    Roles are positions in the last list, which has their names. A million samples take 24 MB.
    """
    table = load_table(path, ["client", "sample", "role"]).combine_chunks()
    role = table["role"].chunk(0).dictionary_encode()
    columns = table["client"].chunk(0), table["sample"].chunk(0), role.indices
    # Not with to_numpy, which imports pandas and costs a second.
    owners, samples, roles = (from_dlpack(column).to(torch.int64) for column in columns)
    return owners, samples, roles, role.dictionary.to_pylist()


@lru_cache(maxsize=1)
def _base(path: Path, version: Version) -> tuple[Weights, dict[str, Any]]:
    """Read base weights once in the life of a warm worker; nothing writes to them."""
    return map_tensors(path)


@lru_cache(maxsize=4)
def _resident(path: Path, version: Version) -> Weights:
    """Read a data set's arrays once in the life of a warm worker; nothing writes to them.

    Files are memory-mapped: workers share them, and copy only the samples that they take.
    """
    return map_tensors(path)[0]


def read_images(
    path: Path, samples: torch.Tensor | None, device: torch.device
) -> tuple[Samples, torch.Tensor | None]:
    """Return images and labels (None if there are none), all or at the indices `samples`."""
    tensors = _resident(path.absolute(), version_of(path))
    if "images" not in tensors:
        raise FedstageError(f"{path}: has no tensor 'images', only {sorted(tensors)}")
    images: Samples = tensors["images"]
    if "starts" in tensors:  # of bags, whose instances are in `images`
        images = Bags(tensors["images"], tensors["starts"])
    labels = tensors.get("labels")
    if samples is not None:
        if len(samples) and int(samples.max()) >= len(images):
            fault = f"and the partition, of another data set, names sample {int(samples.max())}"
            raise FedstageError(f"{path}: has {len(images)} samples, {fault}")
        images = images[samples]
        labels = None if labels is None else labels[samples]
    return images.to(device), None if labels is None else labels.to(device)


def read_clients(path: Path) -> torch.Tensor | None:
    """Return each sample's client, int64 [n], -1 for a sample of no client; None if unknown."""
    return _resident(path.absolute(), version_of(path)).get("clients")


def read_test_clients(path: Path, partition: str, clients: int) -> torch.Tensor | None:
    """Return `read_clients` of test samples, None where the partition is not by these clients.

    A sample of none of the `clients`, such as one of the server's share, has -1.
    """
    owners = read_clients(path) if partition == "natural" else None
    return None if owners is None else torch.where(owners < clients, owners, -1)


def read_public(path: Path, info: Info, device: torch.device) -> Samples:
    """Return public images, which must have the shape of the clients' images in `info`.

    Raises
    ------
    FedstageError
        If they have a different shape.
    """
    images, _ = read_images(path, None, device)
    if (shape := list(images.shape[1:])) != info["shape"]:
        must = f"must be {info['shape']} as the clients' are; set public.image_size"
        raise FedstageError(f"{path}: images of shape {shape}: {must}, or take another data set")
    return images


def tell_private(public: Samples, data: Path | None, clients: Path | None) -> None:
    """Log how many public samples are clients' training samples, given these samples' files."""
    if data is None or clients is None:
        return
    own, _ = read_images(data, read_samples(clients, "train"), torch.device("cpu"))
    private = set(contents(own))
    count = sum(content in private for content in contents(public.to(torch.device("cpu"))))
    _LOGGER.warning("%d of %d public samples are clients' training samples", count, len(public))


def contents(samples: Samples) -> Iterator[bytes]:
    """Yield the values of each sample."""
    if isinstance(samples, Bags):
        return (bag.instances.numpy().tobytes() for bag in samples.split(1))
    return (sample.tobytes() for sample in samples.numpy())


def read_labelled(
    path: Path, samples: torch.Tensor | None, device: torch.device, info: Info | None = None
) -> tuple[Samples, torch.Tensor]:
    """Return images and labels, as in `read_images`.

    Raises
    ------
    FedstageError
        If the file has no labels, or is not of the data set that `info` describes.
    """
    images, labels = read_images(path, samples, device)
    if labels is None:
        raise FedstageError(f"{path}: has no labels; a labelled data set is needed here")
    if info is not None:
        shape, classes = list(images.shape[1:]), info["classes"]
        if shape != info["shape"] or not ((labels >= 0) & (labels < classes)).all():
            must = f"its data set has {classes} classes and samples of shape {info['shape']}"
            fault = f"labels or shape {shape} of another data set, {must}"
            raise FedstageError(f"{path}: {fault}; delete it to make it again")
    return images, labels


# --- samples of each class ------------------------------------------------------------------------


def read_counts(histogram: Path) -> dict[int, dict[int, int]]:
    """Return the number of training samples of every client and class."""
    counts: dict[int, dict[int, int]] = defaultdict(dict)
    columns = ["client", "role", "label", "samples"]
    table = load_table(histogram, columns)
    # By columns: one dictionary per row takes three times as long, seconds with 100,000 clients.
    values = (table[name].to_pylist() for name in columns)
    for client, role, label, samples in zip(*values, strict=True):
        if role == "train":
            counts[client][label] = samples
    return counts


def count_generated(clients: Iterable[int], labels: Iterable[int]) -> list[dict[str, int | str]]:
    """Return rows of a histogram: the generated images of each client and label that occur."""
    counted = Counter(zip(clients, labels, strict=True))
    return [
        {"client": client, "role": "generated", "label": label, "samples": number}
        for (client, label), number in sorted(counted.items())
    ]
