"""Stage `partition`: divide the training samples over clients and roles."""

from pathlib import Path

import numpy as np

from fedstage.artefacts import Weights, load_tensors, save_table
from fedstage.errors import FedstageError
from fedstage.partitions import CLIENTS_SCHEMA, HISTOGRAM_SCHEMA, Indices, divide
from fedstage.partitions.histogram import label_histogram
from fedstage.partitions.roles import split_roles
from fedstage.partitions.settings import PartitionSettings
from fedstage.randomness import numpy_generator
from fedstage.validation import validate_json


def partition(*, settings: str, train: Path, output: Path, histogram: Path) -> None:
    """Write whose each training sample is, and the label histogram of each client.

    Parameters
    ----------
    settings : str
        `fedstage.partitions.settings.PartitionSettings` as a JSON object.
    train : Path
        Training set, safetensors: `labels` and, for the natural partition, `clients`.
    output : Path
        Parquet of `fedstage.partitions.CLIENTS_SCHEMA`.
    histogram : Path
        Parquet of `fedstage.partitions.HISTOGRAM_SCHEMA`.
    """
    chosen = validate_json(PartitionSettings, settings, "--settings")
    tensors, _ = load_tensors(train)
    labels = _column(tensors, "labels")
    if labels is None:
        raise FedstageError(f"{train}: has no tensor 'labels', only {sorted(tensors)}")
    generator = numpy_generator(chosen.seed, "partition", "clients")
    natural = _column(tensors, "clients")
    assigned = divide(chosen.partition, labels, chosen.clients, generator, natural)
    columns = split_roles(assigned, chosen.validation, chosen.seed, chosen.aggregator_fraction)
    save_table(output, columns, CLIENTS_SCHEMA)
    save_table(histogram, label_histogram(columns, labels), HISTOGRAM_SCHEMA)


def _column(tensors: Weights, name: str) -> Indices | None:
    return tensors[name].numpy().astype(np.int64) if name in tensors else None
