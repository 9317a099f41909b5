"""Tables of texts, CSV or Parquet: one row per text, with a label and, if known, a client."""

from pathlib import Path

from fedstage.data.datasets.columns import labelled_rows, text_column
from fedstage.data.datasets.images import Dataset
from fedstage.data.datasets.texts import tokens_of, vocabulary_of
from fedstage.data.table_files import read_files
from fedstage.settings.data import TextData


def load(settings: TextData, folder: Path) -> Dataset:
    """Read the texts below the data folder as tokens int32 [n, length], padded with 0.

    Classes and clients are numbered in the order of their names. Without a vocabulary file the
    vocabulary is built from the training texts.

    Raises
    ------
    FedstageError
        If a file is missing, damaged or lacks a column, a value is missing or of another type, or
        there are fewer texts than a size.
    """
    train, every = read_files(settings, folder, texts=[settings.text])
    rows = labelled_rows(settings, train, every)
    in_files = text_column("data.text", settings.text, every)
    texts = [in_files[row] for row in rows.order.tolist()]
    split = rows.split(settings)
    vocabulary = vocabulary_of(settings, folder, (texts[row] for row in split.train.tolist()))
    return rows.dataset(
        split,
        lambda own: tokens_of([texts[row] for row in own.tolist()], vocabulary, settings.length),
    )
