"""Stage `core`: the server's own labelled training samples."""

from pathlib import Path

import torch

from fedstage.data.bags import Bags
from fedstage.data.samples import read_info, read_labelled, read_samples
from fedstage.errors import FedstageError
from fedstage.plan.inputs import ClientsInputs
from fedstage.settings.partitions import PartitionSettings
from fedstage.settings.validation import validate_json
from fedstage.storage.tensors import save_tensors


def core(read: ClientsInputs[Path], *, settings: str, output: Path) -> None:
    """Write the samples of the role ``core``, in the order of the training set, with their labels.

    Parameters
    ----------
    settings : str
        `fedstage.settings.partitions.PartitionSettings` as a JSON object.

    Raises
    ------
    FedstageError
        If a required class is missing.
    """
    chosen = validate_json(PartitionSettings, settings, "--settings").core
    images, labels = read_labelled(
        read.data, read_samples(read.clients, "core"), torch.device("cpu")
    )
    if isinstance(images, Bags):
        raise FedstageError(f"{read.data}: samples are bags: a core needs samples of one shape")
    number = int(read_info(read.info)["classes"])
    missing = sorted(set(range(number)) - set(labels.tolist()))
    if missing and chosen is not None and chosen.classes == "all":
        raise FedstageError(
            f"core.classes = 'all': {len(missing)} of {number} classes have no sample among the "
            f"core's {len(labels)}, such as class {missing[0]}; take core.samples = stratified, "
            "core.classes = some, fewer clients or another partition"
        )
    save_tensors(output, {"images": images, "labels": labels}, {"samples": len(labels)})
