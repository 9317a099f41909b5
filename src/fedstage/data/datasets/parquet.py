"""Encoded images in Parquet, in the layout of the Hugging Face hub.

Rows are counted from 0 within a file, in messages too.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from fedstage.data.datasets.columns import kind_of, labelled_rows
from fedstage.data.datasets.decoding import Decoder, Encoded
from fedstage.data.datasets.images import Dataset
from fedstage.data.datasets.labelled import Labelled, Named
from fedstage.data.datasets.splits import Rows, rows_by_part
from fedstage.data.layouts import find_files
from fedstage.data.table_files import Files, read_schema, require
from fedstage.errors import FedstageError, each
from fedstage.settings.data import HubImages, OfHub, ParquetData
from fedstage.storage.tables import load_foreign_table

ReadImages: TypeAlias = Callable[[Path], pa.ChunkedArray]  # of the structs in a file

IMAGE_COLUMNS = ("img", "image")
_MOST_CLASSES = 100_000  # the last layer of a model has a row for each


def load(settings: ParquetData, folder: Path) -> Dataset:
    """Read images, labels and, for the training set, clients below the data folder.

    Images become RGB; only images of the split are decoded. Clients are numbered in the order of
    their names.

    Raises
    ------
    FedstageError
        If a file is missing, damaged or lacks a column; if a label, a client or an image is
        invalid; if images differ in shape; or if there are fewer samples than a size.
    """
    found = find_files(settings, folder)
    found.tell(folder / settings.folder)
    every = each(lambda path: (path, _named_columns(settings, path)), [*found.train, *found.test])
    return images_of(settings, len(found.train), every, _read_images)


def images_of(
    settings: ParquetData | HubImages, train: int, files: Files, read: ReadImages
) -> Dataset:
    """Return tables, the first `train` for training, as images, which `read` gives for each."""
    rows = with_stated_names(settings, files, labelled_rows(settings, train, files))
    decoder = Decoder(settings.image_size, settings.resampling)

    def encoded(own: Rows) -> Iterator[Encoded]:
        by_file = rows_by_part([table.num_rows for _, table in files], rows.order[own])
        for (path, _), chosen in zip(files, by_file, strict=True):
            if len(chosen):
                yield _encoded(path, read(path), chosen.tolist())

    def samples(own: Rows) -> torch.Tensor:
        return decoder.decode_all(len(own), encoded(own))

    dataset = rows.dataset(rows.split(settings), samples)
    decoder.tell()
    return dataset


def _encoded(path: Path, images: pa.ChunkedArray, rows: Sequence[int]) -> Encoded:
    pixels = pc.struct_field(images, "bytes")
    return [f"{path}: row {row}" for row in rows], lambda number: pixels[rows[number]].as_py()


def _read_images(path: Path) -> pa.ChunkedArray:
    image = _image_column(path, read_schema(path))
    return load_foreign_table(path, [image]).column(image)


def _named_columns(settings: ParquetData, path: Path) -> pa.Table:
    """Return the columns of labels, clients and groups of a file that has images."""
    schema = read_schema(path)
    image = _image_column(path, schema)
    kind = schema.field(image).type
    if not (pa.types.is_struct(kind) and kind.get_field_index("bytes") >= 0):
        raise FedstageError(f"{path}: column {image!r} is {kind}, must be struct<bytes, path>")
    require(path, "data.label", settings.label, schema.names)
    wanted = (settings.label, settings.client_column, settings.group_column)
    table = load_foreign_table(path, [name for name in schema.names if name in wanted])
    if not table.num_rows:
        raise FedstageError(f"{path}: has no rows")
    return table.replace_schema_metadata(schema.metadata)


def _image_column(path: Path, schema: pa.Schema) -> str:
    image = next((name for name in IMAGE_COLUMNS if name in schema.names), None)
    if image is None:
        columns = ", ".join(schema.names)
        raise FedstageError(f"{path}: has no column 'img' or 'image'; its columns are {columns}")
    return image


# --- names of the classes -------------------------------------------------------------------------


def with_stated_names(settings: ParquetData | OfHub, files: Files, rows: Labelled) -> Labelled:
    """Return rows whose integer labels have the names in the files' metadata.

    Without these, classes are all numbers up to the highest label.
    """
    if any(kind_of(table[settings.label].type) != "integer" for _, table in files):
        return rows
    labels = [table[settings.label].to_numpy() for _, table in files]
    stated = [_stated_names(path, table.schema, settings.label) for path, table in files]
    for (path, _), names in zip(files, stated, strict=True):
        if names != stated[0]:
            raise FedstageError(f"{path}: class names differ from those in {files[0][0]}")
    highest = max(int(own.max()) for own in labels)
    names = stated[0] or tuple(map(str, range(min(highest + 1, _MOST_CLASSES))))
    for (path, _), own in zip(files, labels, strict=True):
        wrong = (own < 0) | (own >= len(names))
        if wrong.any():
            row = int(wrong.argmax())
            must = f"must be 0..{len(names) - 1}, there are {len(names)} classes"
            raise FedstageError(f"{path}: row {row}: {settings.label} = {own[row]}: {must}")
    return replace(rows, labels=Named(np.concatenate(labels).astype(np.int64)[rows.order], names))


def _stated_names(path: Path, schema: pa.Schema, label: str) -> tuple[str, ...] | None:
    """Return the class names in a file's metadata, None where the label has none."""
    key = f"{label}_names"
    names = _metadata(path, schema, key)
    if names is None:
        key = "huggingface"
        names = _metadata(path, schema, key)
        for part in ("info", "features", label, "names"):
            names = names.get(part) if isinstance(names, dict) else None
    if names is None:
        return None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise FedstageError(f"{path}: metadata {key!r}: must list the class names as strings")
    return tuple(names)


def _metadata(path: Path, schema: pa.Schema, key: str) -> Any:
    text = (schema.metadata or {}).get(key.encode())
    try:
        return None if text is None else json.loads(text)
    except ValueError as error:
        raise FedstageError(f"{path}: metadata {key!r}: is not JSON ({error})") from None
