"""Tables of texts, CSV or Parquet: one row per text, with a label and, if known, a client."""

from collections.abc import Sequence
from pathlib import Path

from fedstage.data.datasets.columns import labelled_rows, text_column
from fedstage.data.datasets.images import Dataset
from fedstage.data.datasets.labelled import Labelled
from fedstage.data.datasets.texts import token_reader
from fedstage.data.layouts import find_files
from fedstage.data.table_files import read_files
from fedstage.errors import both
from fedstage.settings.data import HubTexts, TextData


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
    found = find_files(settings, folder)
    found.tell(folder / settings.folder)
    names = (settings.text, settings.label, settings.client_column, settings.group_column)
    every = read_files([*found.train, *found.test], {*filter(None, names)})
    rows, texts = both(
        lambda: labelled_rows(settings, len(found.train), every),
        lambda: text_column("data.text", settings.text, every),
    )
    return as_tokens(settings, folder, rows, texts)


def as_tokens(
    settings: TextData | HubTexts, folder: Path | None, rows: Labelled, in_files: Sequence[str]
) -> Dataset:
    """Return the texts of all files as a data set of tokens."""
    split = rows.split(settings)
    texts = [in_files[row] for row in rows.order.tolist()]
    return rows.dataset(split, token_reader(settings, folder, texts, split.train))
