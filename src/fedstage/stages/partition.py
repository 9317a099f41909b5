"""Stage `partition`: divide the training samples over clients and roles."""

from pathlib import Path

import numpy as np

from fedstage.data.partitions import CLIENTS_SCHEMA, HISTOGRAM_SCHEMA, Indices
from fedstage.data.partitions.core import divide_with_core, with_core
from fedstage.data.partitions.roles import label_histogram, split_roles
from fedstage.errors import FedstageError
from fedstage.plan.inputs import PartitionInputs
from fedstage.settings.partitions import PartitionSettings
from fedstage.settings.validation import validate_json
from fedstage.storage.tables import save_table
from fedstage.storage.tensors import map_tensors
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
