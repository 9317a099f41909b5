"""Columns of accuracies by client and class."""

import pyarrow as pa

#: What an accuracy is of: a client's own samples for validation, the test samples weighted by the
#: client's own mix of classes, or the test samples of a class.
VALIDATION, OWN_MIX, CLASS = "validation", "own_mix", "class"

#: One row per client and kind of accuracy, and one per class.
CLIENTS_SCHEMA = pa.schema(
    [
        pa.field("of", pa.string(), nullable=False),
        pa.field("client", pa.int64()),  # null for a class
        pa.field("label", pa.int64()),  # null for a client
        # Samples for validation, of the client's mix (for training), or of the class.
        pa.field("samples", pa.int64(), nullable=False),
        pa.field("accuracy", pa.float64()),  # percent; null for a mix that the test samples lack
    ]
)
