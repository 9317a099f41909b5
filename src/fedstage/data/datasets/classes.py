"""Check that the training samples cover the classes of the test samples."""

import logging

import torch

from fedstage.data.datasets.images import Dataset
from fedstage.data.excerpts import quoted
from fedstage.errors import FedstageError

_LOGGER = logging.getLogger(__name__)


def check_classes(name: str, data: Dataset) -> None:
    """Warn of each class of the test samples that has no training sample, and thus no client.

    Raises
    ------
    FedstageError
        If all training samples are of one class.
    """
    trained = data.train.labels.unique().tolist()
    if len(trained) < 2:
        names = " and ".join(quoted(data.class_names[label]) for label in trained)
        raise FedstageError(
            f"data = {name}: all training samples are of class {names}; at least 2 classes are "
            "needed"
        )
    labels, counts = torch.unique(data.test.labels, return_counts=True)
    for label, count in zip(labels.tolist(), counts.tolist(), strict=True):
        if label not in trained:
            _LOGGER.warning(
                "data = %s: no client has samples of class %s, which %d of %d test samples are of",
                name, quoted(data.class_names[label]), count, len(data.test.labels),
            )  # fmt: skip
