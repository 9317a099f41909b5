"""Stages that divide the training samples: over clients and roles, and the server's own (core)."""

from pathlib import Path

import numpy as np
import torch

from fedstage.data.bags import Bags
from fedstage.data.partitions import CLIENTS_SCHEMA, HISTOGRAM_SCHEMA, Indices
from fedstage.data.partitions.roles import divide_with_core, label_histogram, split_roles, with_core
from fedstage.data.samples import read_info, read_labelled, read_samples
from fedstage.errors import FedstageError
from fedstage.plan.inputs import ClientsInputs, PartitionInputs
from fedstage.settings.partitions import PartitionSettings
from fedstage.settings.validation import validate_json
from fedstage.storage.tables import save_table
from fedstage.storage.tensors import map_tensors, save_tensors
from fedstage.weights import Weights


def partition(read: PartitionInputs[Path], *, settings: str, output: Path, histogram: Path) -> None:
    """Write the client and role of each training sample, and the label histogram of each client.

    The samples of a core have the number after the last client's.

    Parameters
    ----------
    settings : str
        `fedstage.settings.partitions.PartitionSettings` as a JSON object.
    output, histogram : Path
        Parquet of CLIENTS_SCHEMA and HISTOGRAM_SCHEMA of `fedstage.data.partitions`.
    """
    chosen = validate_json(PartitionSettings, settings, "--settings")
    tensors, _ = map_tensors(read.train)
    labels = _column(tensors, "labels")
    if labels is None:
        raise FedstageError(f"{read.train}: has no tensor 'labels', only {sorted(tensors)}")
    natural = _column(tensors, "clients")
    assigned, own = divide_with_core(chosen, labels, natural)
    roles = (chosen.validation, chosen.seed, chosen.aggregator_fraction)
    columns = split_roles(assigned, *roles)
    if own is not None:
        columns = with_core(columns, own, chosen.clients)
    save_table(output, columns, CLIENTS_SCHEMA)
    save_table(histogram, label_histogram(columns, labels), HISTOGRAM_SCHEMA)


def _column(tensors: Weights, name: str) -> Indices | None:
    return tensors[name].numpy().astype(np.int64) if name in tensors else None


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
