"""Columns of accuracies by client and class."""

import pyarrow as pa

#: What an accuracy is measured on: a client's own test samples, its own validation samples, all
#: test samples weighted by the client's own mix of classes, or the test samples of a class.
TEST, VALIDATION, OWN_MIX, CLASS = "test", "validation", "own_mix", "class"

#: One row per client and kind of accuracy, and one per class.
CLIENTS_SCHEMA = pa.schema(
    [
        pa.field("of", pa.string(), nullable=False),
        pa.field("client", pa.int64()),  # null for a class
        pa.field("label", pa.int64()),  # null for a client
        # The number of scored samples; for a mix, of the client's training samples.
        pa.field("samples", pa.int64(), nullable=False),
        # Percent; null for a client without samples, or with a mix that the test samples lack.
        pa.field("accuracy", pa.float64()),
    ]
)
