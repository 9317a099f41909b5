"""A user's own images: in folders named by class and perhaps client, or encoded in Parquet.

Parquet is in the layout of the Hugging Face hub. Rows are counted from 0 within a file, in messages
too.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fedstage.data.datasets.columns import OF_SPLITS, coded, labelled_rows
from fedstage.data.datasets.decoding import Decoder, Encoded
from fedstage.data.datasets.images import Dataset
from fedstage.data.datasets.splits import Labelled, Named, Rows, rows_by_part
from fedstage.data.excerpts import excerpt, listed, plain
from fedstage.data.kinds import kind_of, stated_names
from fedstage.data.layouts import IMAGE_COLUMNS, find_files, split_word
from fedstage.data.table_files import read_schema, read_table
from fedstage.data.text_files import Files, row_at
from fedstage.errors import FedstageError, each
from fedstage.settings.data import HubImages, ImageFolder, OfHub, ParquetData
from fedstage.storage.files import read_bytes
from fedstage.storage.tables import load_foreign_table

ReadImages: TypeAlias = Callable[[Path], pa.ChunkedArray]  # of the structs in a file

_LOGGER = logging.getLogger(__name__)

_MOST_CLASSES = 100_000  # the last layer of a model has a row for each


def load(settings: ParquetData | ImageFolder, folder: Path) -> Dataset:
    """Read images, labels and, for the training set, clients below the data folder.

    Images become RGB, uint8 [n, 3, H, W]; only images of the split are decoded. Classes and clients
    are numbered in the order of their names.

    Raises
    ------
    FedstageError
        If a file is missing, damaged, too large, lacks a column or is in no folder of a class; if a
        label or a client is invalid; if images differ in shape and are not resized; or if there are
        fewer samples than a size.
    """
    found = find_files(settings, folder)
    found.tell(folder / settings.folder)
    every = [*found.train, *found.test]
    if isinstance(settings, ParquetData):
        files = each(lambda path: (path, _named_columns(settings, path)), every)
        return images_of(settings, len(found.train), files, _read_images)

    def named(what: str, depth: int) -> Named:
        names = [path.parts[-depth] for path in every]
        for path, name in zip(every, names, strict=True):
            if not plain(name) or not name.isprintable():
                must = "the name of a folder must be readable letters, in UTF-8"
                raise FedstageError(f"{excerpt(str(path))}: {must}")
        return coded(what, [pa.chunked_array([names])])

    clients = named("clients", 3) if settings.client_folders else None
    classes = named("classes", 2)
    if {"train", "test"} <= {split_word(name) for name in classes.names}:
        _LOGGER.warning("classes are named as splits are: %s", listed(classes.names))
    rows = Labelled(classes, clients, None, len(found.train), np.arange(len(every)))

    def encoded(own: Rows) -> Iterator[Encoded]:
        chosen = [every[row] for row in own.tolist()]
        yield list(map(str, chosen)), lambda number: read_bytes(chosen[number])

    return _decoded(settings, rows.drawn(settings, found.test_fraction), encoded)


def _decoded(
    settings: ParquetData | ImageFolder | HubImages, rows: Labelled,
    encoded: Callable[[Rows], Iterable[Encoded]],
) -> Dataset:  # fmt: skip
    """Decode the images, which are `encoded` at positions in the files."""
    decoder = Decoder(settings.image_size, settings.resampling)
    dataset = rows.dataset(
        rows.split(settings), lambda own: decoder.decode_all(len(own), encoded(rows.order[own]))
    )
    decoder.tell()
    return dataset


def images_of(
    settings: ParquetData | HubImages, train: int, files: Files, read: ReadImages
) -> Dataset:
    """Return tables, the first `train` for training, as images, which `read` gives for each."""

    def encoded(own: Rows) -> Iterator[Encoded]:
        by_file = rows_by_part([table.num_rows for _, table in files], own)
        for (path, _), chosen in zip(files, by_file, strict=True):
            if len(chosen):
                yield _encoded(path, read(path), chosen.tolist())

    rows = with_stated_names(settings, files, labelled_rows(settings, train, files))
    return _decoded(settings, rows, encoded)


def _encoded(path: Path, images: pa.ChunkedArray, rows: Sequence[int]) -> Encoded:
    pixels = pc.struct_field(images, "bytes")
    return [f"{path}: row {row}" for row in rows], lambda number: pixels[rows[number]].as_py()


def _read_images(path: Path) -> pa.ChunkedArray:
    image, _ = _image_column(path)
    return load_foreign_table(path, [image]).column(image)


def _named_columns(settings: ParquetData, path: Path) -> pa.Table:
    """Return the columns of labels, clients and groups of a file that has images."""
    _, others = _image_column(path)
    if splits := [name for name in others if OF_SPLITS.fullmatch(name.lower())]:
        _LOGGER.warning("%s: columns that are not read: %s", path, listed(splits))
    known = {name: name for name in (settings.client_column, settings.group_column)
             if name in others}  # fmt: skip
    return read_table(path, {"data.label": settings.label, **known})


def _image_column(path: Path) -> tuple[str, list[str]]:
    """Return the name of the column of images in a file, and the names of all columns."""
    schema = read_schema(path)
    images = [name for name in IMAGE_COLUMNS if name in schema.names]
    if len(images) != 1:
        columns = f"must have one column 'img' or 'image'; its columns are {listed(schema.names)}"
        raise FedstageError(f"{path}: {columns}")
    (image,) = images
    kind = schema.field(image).type
    own = kind.field("bytes").type if pa.types.is_struct(kind) and "bytes" in kind.names else None
    if own not in (pa.binary(), pa.large_binary()):
        raise FedstageError(f"{path}: column {image!r} is {kind}, must be struct<bytes, path>")
    return image, schema.names


# --- names of the classes -------------------------------------------------------------------------


def with_stated_names(settings: ParquetData | OfHub, files: Files, rows: Labelled) -> Labelled:
    """Return rows whose integer labels have the names in the files' metadata.

    Without these, classes are all numbers up to the highest label.
    """
    if any(kind_of(table[settings.label].type) != "integer" for _, table in files):
        return rows
    labels = np.concatenate([table[settings.label].to_numpy() for _, table in files])
    stated = [stated_names(path, table.schema, settings.label) for path, table in files]
    for (path, _), own in zip(files, stated, strict=True):
        if own != stated[0]:
            raise FedstageError(f"{path}: class names differ from those in {files[0][0]}")
    names = stated[0] or tuple(map(str, range(min(int(labels.max()) + 1, _MOST_CLASSES))))
    must = f"must be 0..{len(names) - 1}, there are {len(names)} classes"
    for row in np.flatnonzero((labels < 0) | (labels >= len(names))).tolist():
        raise FedstageError(f"{row_at(files, row)}: {settings.label} = {labels[row]}: {must}")
    return replace(rows, labels=Named(labels.astype(np.int64)[rows.order], names))
