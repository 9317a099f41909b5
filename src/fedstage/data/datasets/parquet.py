"""Encoded images in Parquet, in the layout of the Hugging Face hub.

Rows are counted from 0 within a file, in messages too.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from fedstage.data.datasets.decoding import Decode, Reader, decode, decode_all, decode_one
from fedstage.data.datasets.images import Dataset, Images
from fedstage.data.datasets.splits import Rows, choose_rows, rows_by_part
from fedstage.data.table_files import read_schema
from fedstage.errors import FedstageError
from fedstage.settings.data import ParquetData
from fedstage.storage.raw_files import find_part, folder_of
from fedstage.storage.tables import load_foreign_table

_IMAGE_COLUMNS = ("img", "image")
_MOST_CLASSES = 100_000  # the last layer of a model has a row for each

Types = Mapping[str, Callable[[pa.DataType], bool]]
_LABELS: Types = {"integer": pa.types.is_integer}
_CLIENTS: Types = {
    "integer": pa.types.is_integer,
    "string": lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind),
}


@dataclass(frozen=True)
class _File:
    """A Parquet file: its schema, the name of its image column, and all its labels, int64 [n]."""

    path: Path
    schema: pa.Schema
    image: str
    labels: Rows


def load(settings: ParquetData, folder: Path) -> Dataset:
    """Read images, labels and, for the training set, clients below the data folder.

    Training files are `train*.parquet`; test files `test*.parquet` or, without any,
    `valid*.parquet`. Images become RGB; only images of the split are decoded. The values of
    `client_column` in the split are numbered 0, 1, ... in sorted order.

    Raises
    ------
    FedstageError
        If a file is missing, damaged or lacks a column; if a label, a client or an image is
        invalid; if images differ in shape; or if there are fewer samples than a size.
    """
    folder_of(settings, folder)
    train = [_open(path, settings.label) for path in find_part(settings, folder, "train")]
    test = [_open(path, settings.label) for path in find_part(settings, folder, "test")]
    every = [*train, *test]
    names = _class_names(every, settings.label)
    counts = (sum(len(file.labels) for file in files) for files in (train, test))
    rows = choose_rows(settings, *counts)
    decoded = partial(decode, size=settings.image_size, resampling=settings.resampling)
    images = _images(every, rows.train, decoded, None)
    shape = tuple(images.shape[1:])
    trained = _clients(every, rows.train, settings.client_column)
    places = {client: place for place, client in enumerate(sorted(set(trained)))}

    def part(own: Rows, clients: Sequence[int | str] = ()) -> Images:
        pixels = images if own is rows.train else _images(every, own, decoded, shape)
        owners = torch.tensor([places.get(client, -1) for client in clients], dtype=torch.int64)
        return Images(pixels, _labels(every, own), owners if clients else None)

    return Dataset(
        train=part(rows.train, trained),
        test=part(rows.test, _of_tests(every, rows.test, settings.client_column)),
        held_out=part(rows.held_out).images,
        server_validation=part(rows.server_validation),
        class_names=names,
        client_names=tuple(map(str, places)) or None,
    )


# --- columns --------------------------------------------------------------------------------------


def _open(path: Path, label: str) -> _File:
    schema = read_schema(path)
    image = next((name for name in _IMAGE_COLUMNS if name in schema.names), None)
    if image is None:
        raise FedstageError(f"{path}: has no column 'img' or 'image'; {_columns(schema)}")
    kind = schema.field(image).type
    if not (pa.types.is_struct(kind) and kind.get_field_index("bytes") >= 0):
        raise FedstageError(f"{path}: column {image!r} is {kind}, must be struct<bytes, path>")
    labels = _read_column(path, schema, "data.label", label, _LABELS)
    if not len(labels):
        raise FedstageError(f"{path}: has no rows")
    # Not to_numpy, which imports pandas.
    return _File(path, schema, image, np.from_dlpack(labels.combine_chunks()).astype(np.int64))


def _read_column(
    path: Path, schema: pa.Schema, key: str, column: str, types: Types
) -> pa.ChunkedArray:
    """Read the column of the setting `key`, which has one of `types` and no nulls."""
    where = f"{path}: {key} = {column!r}"
    if column not in schema.names:
        raise FedstageError(f"{where}: no such column; {_columns(schema)}")
    kind = schema.field(column).type
    if not any(is_one(kind) for is_one in types.values()):
        raise FedstageError(f"{where}: column is {kind}, must be {' or '.join(types)}")
    values = load_foreign_table(path, [column]).column(column)
    if values.null_count:
        row = pc.index(values.is_null(), True).as_py()
        raise FedstageError(f"{path}: row {row}: {column} = null: a value is required")
    return values


def _columns(schema: pa.Schema) -> str:
    return f"its columns are {', '.join(schema.names)}"


def _rows_by_file(files: Sequence[_File], rows: Rows) -> Iterator[tuple[_File, Rows]]:
    """Yield each file that has some of `rows`, with its rows."""
    by_file = rows_by_part([len(file.labels) for file in files], rows)
    return ((file, own) for file, own in zip(files, by_file, strict=True) if len(own))


def _labels(files: Sequence[_File], rows: Rows) -> torch.Tensor:
    return torch.from_numpy(np.concatenate([file.labels for file in files])[rows])


def _clients(files: Sequence[_File], rows: Rows, column: str | None) -> list[Any]:
    """Return the client of each row; empty if there is no column of clients."""
    values: list[Any] = []
    if column is None:
        return values
    first: _File | None = None
    for file, own in _rows_by_file(files, rows):
        key = "data.client_column"
        read = _read_column(file.path, file.schema, key, column, _CLIENTS)
        first = first or file
        if pa.types.is_integer(read.type) != pa.types.is_integer(first.schema.field(column).type):
            where = f"{file.path}: {key} = {column!r}: column is {read.type}"
            raise FedstageError(f"{where}, in {first.path} it is not")
        values += read.take(pa.array(own)).to_pylist()
    return values


def _of_tests(files: Sequence[_File], rows: Rows, column: str | None) -> list[Any]:
    """Return the client of each row for testing; empty if no test file has the column."""
    tested = [file for file, _ in _rows_by_file(files, rows)]
    return _clients(files, rows, column) if any(column in f.schema.names for f in tested) else []


# --- names of the classes -------------------------------------------------------------------------


def _class_names(files: Sequence[_File], label: str) -> tuple[str, ...]:
    """Return the names in the files' metadata, or numbers up to the highest label."""
    stated = _stated_names(files[0], label)
    for file in files:
        if _stated_names(file, label) != stated:
            raise FedstageError(f"{file.path}: class names differ from those in {files[0].path}")
    highest = max(int(file.labels.max()) for file in files)
    names = stated or tuple(str(index) for index in range(min(highest + 1, _MOST_CLASSES)))
    for file in files:
        wrong = (file.labels < 0) | (file.labels >= len(names))
        if wrong.any():
            row = int(wrong.argmax())
            raise FedstageError(
                f"{file.path}: row {row}: {label} = {file.labels[row]}: must be "
                f"0..{len(names) - 1}, there are {len(names)} classes"
            )
    return names


def _stated_names(file: _File, label: str) -> tuple[str, ...] | None:
    """Return the class names in a file's metadata, None where the label has none."""
    key = f"{label}_names"
    names = _metadata(file, key)
    if names is None:
        key = "huggingface"
        names = _metadata(file, key)
        for part in ("info", "features", label, "names"):
            names = names.get(part) if isinstance(names, dict) else None
    if names is None:
        return None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise FedstageError(f"{file.path}: metadata {key!r}: must list the class names as strings")
    return tuple(names)


def _metadata(file: _File, key: str) -> Any:
    text = (file.schema.metadata or {}).get(key.encode())
    try:
        return None if text is None else json.loads(text)
    except ValueError as error:
        raise FedstageError(f"{file.path}: metadata {key!r}: is not JSON ({error})") from None


# --- images ---------------------------------------------------------------------------------------


def _images(
    files: Sequence[_File], rows: Rows, decoded: Decode, shape: tuple[int, ...] | None
) -> torch.Tensor:
    """Decode rows to uint8 [n, 3, H, W]; every image has `shape`, or the first one's."""
    pixels = np.empty((len(rows), *(shape or ())), np.uint8)
    done = 0
    for file, own in _rows_by_file(files, rows):
        read, where = _reader(file, own.tolist())
        if shape is None:
            shape = decode_one(read(0), where(0), decoded).shape
            pixels = np.empty((len(rows), *shape), np.uint8)
        decode_all(pixels[done : done + len(own)], read, where, decoded)
        done += len(own)
    return torch.from_numpy(pixels)


def _reader(file: _File, rows: Sequence[int]) -> tuple[Reader, Callable[[int], str]]:
    """Return two functions of a row's position: its encoded image, and the image's place."""
    column = load_foreign_table(file.path, [file.image]).column(file.image)
    encoded = pc.struct_field(column, "bytes")

    def read(place: int) -> bytes | None:
        image: bytes | None = encoded[rows[place]].as_py()
        return image

    return read, lambda place: f"{file.path}: row {rows[place]}"
