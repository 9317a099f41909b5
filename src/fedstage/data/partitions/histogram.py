"""Label histograms: how many samples of each class a client has."""

import numpy as np

from fedstage.data.partitions import Indices
from fedstage.data.partitions.roles import Columns


def label_histogram(columns: Columns, labels: Indices) -> Columns:
    """Count the samples of each client, role and label.

    Parameters
    ----------
    columns : dict of arrays
        Columns of `fedstage.data.partitions.CLIENTS_SCHEMA`.
    labels : array of shape [n]
        Class of each training sample.

    Returns
    -------
    dict of arrays
        Columns of `fedstage.data.partitions.HISTOGRAM_SCHEMA`, sorted; combinations that do not occur
        have no row.
    """
    roles, role = np.unique(columns["role"], return_inverse=True)
    keys = np.stack([columns["client"], role, labels[columns["sample"]]])
    (client, role, label), samples = np.unique(keys, axis=1, return_counts=True)
    return {"client": client, "role": roles[role], "label": label, "samples": samples}
