"""Stages that divide the training samples: over clients and roles, and the server's own (core)."""

from pathlib import Path

import numpy as np
import torch

from fedstage.data.bags import Bags
from fedstage.data.datasets import check_classes
from fedstage.data.folder import default_folder
from fedstage.data.partitions import CLIENTS_SCHEMA, HISTOGRAM_SCHEMA, Indices
from fedstage.data.partitions.roles import divide_with_core, label_histogram, split_roles, with_core
from fedstage.data.samples import read_info, read_labelled, read_samples
from fedstage.errors import FedstageError
from fedstage.plan.inputs import ClientsInputs, PartitionInputs
from fedstage.settings.partitions import PartitionSettings
from fedstage.storage.raw_files import unchanged
from fedstage.storage.tables import save_table
from fedstage.storage.tensors import map_tensors, save_tensors
from fedstage.weights import Weights


def partition(
    recipe: PartitionSettings, read: PartitionInputs[Path], *, output: Path, histogram: Path
) -> None:
    """Write the client and role of each training sample, and the label histogram of each client.

    The samples of a core have the number after the last client's.

    Parameters
    ----------
    output, histogram : Path
        Parquet of CLIENTS_SCHEMA and HISTOGRAM_SCHEMA of `fedstage.data.partitions`.
    """
    tensors, _ = map_tensors(read.train)
    labels = _column(tensors, "labels")
    if labels is None:
        raise FedstageError(f"{read.train}: has no tensor 'labels', only {sorted(tensors)}")
    info, tested = read_info(read.info), map_tensors(read.test)[0]["labels"]
    check_classes(info["name"], info["class_names"], tensors["labels"], tested)
    natural = _column(tensors, "clients")
    with unchanged(recipe.partition, default_folder(), read.raw):
        assigned, own = divide_with_core(recipe, labels, natural)
    roles = (recipe.validation, recipe.seed, recipe.aggregator_fraction)
    columns = split_roles(assigned, *roles)
    if own is not None:
        columns = with_core(columns, own, recipe.clients)
    save_table(output, columns, CLIENTS_SCHEMA)
    save_table(histogram, label_histogram(columns, labels), HISTOGRAM_SCHEMA)


def _column(tensors: Weights, name: str) -> Indices | None:
    return tensors[name].numpy().astype(np.int64) if name in tensors else None


def core(recipe: PartitionSettings, read: ClientsInputs[Path], *, output: Path) -> None:
    """Write the samples of the role ``core``, in the order of the training set, with their labels.

    Raises
    ------
    FedstageError
        If a required class is missing.
    """
    images, labels = read_labelled(
        read.data, read_samples(read.clients, "core"), torch.device("cpu")
    )
    if isinstance(images, Bags):
        raise FedstageError(f"{read.data}: samples are bags: a core needs samples of one shape")
    number = int(read_info(read.info)["classes"])
    missing = sorted(set(range(number)) - set(labels.tolist()))
    if missing and recipe.core is not None and recipe.core.classes == "all":
        raise FedstageError(
            f"core.classes = 'all': {len(missing)} of {number} classes have no sample among the "
            f"core's {len(labels)}, such as class {missing[0]}; take core.samples = stratified, "
            "core.classes = some, fewer clients or another partition"
        )
    save_tensors(output, {"images": images, "labels": labels}, {"samples": len(labels)})
