"""Stage `core`: the labelled training samples that the server has of its own."""

from pathlib import Path

import torch

from fedstage.data.bags import Bags
from fedstage.data.samples import read_info, read_labelled, read_samples
from fedstage.errors import FedstageError
from fedstage.storage.tensors import save_tensors


def core(*, data: Path, clients: Path, info: Path, classes: str, output: Path) -> None:
    """Write the samples of the role ``core``, in the order of the training set, with their labels.

    Parameters
    ----------
    data : Path
        The training set.
    clients : Path
        The partition.
    classes : str
        ``all`` if every class of the data set must occur, or ``some``.

    Raises
    ------
    FedstageError
        If a class is missing that must occur.
    """
    images, labels = read_labelled(data, read_samples(clients, "core"), torch.device("cpu"))
    if isinstance(images, Bags):
        raise FedstageError(f"{data}: samples are bags: a core needs samples of one shape")
    number = int(read_info(info)["classes"])
    missing = sorted(set(range(number)) - set(labels.tolist()))
    if missing and classes == "all":
        raise FedstageError(
            f"core.classes = 'all': {len(missing)} of {number} classes have no sample among the "
            f"core's {len(labels)}, such as class {missing[0]}; take core.classes = some, fewer "
            "clients or another partition"
        )
    save_tensors(output, {"images": images, "labels": labels}, {"samples": len(labels)})
