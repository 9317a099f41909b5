from collections import Counter

import numpy as np
import pyarrow as pa

from fedstage.data.partitions import HISTOGRAM_SCHEMA
from fedstage.data.partitions.roles import label_histogram, split_roles


def rows(columns):
    return list(zip(*(columns[name].tolist() for name in HISTOGRAM_SCHEMA.names), strict=True))


def test_agrees_with_counting_one_by_one_sorted_and_without_zeros():
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 12, 500)
    columns = split_roles(np.array_split(generator.permutation(500), 12), 0.3, 0)
    counted = Counter(
        (int(client), str(role), int(labels[sample]))
        for client, sample, role in zip(*columns.values(), strict=True)
    )
    expected = [(*key, samples) for key, samples in sorted(counted.items())]
    histogram = label_histogram(columns, labels)
    assert rows(histogram) == expected
    assert histogram["samples"].min() > 0
    table = pa.table(histogram, schema=HISTOGRAM_SCHEMA)
    assert table.num_rows == len(expected)
