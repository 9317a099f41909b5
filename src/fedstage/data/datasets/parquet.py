"""Encoded images in Parquet, in the layout of the Hugging Face hub.

Rows are counted from 0 within a file, in messages too.
"""

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import torch

from fedstage.data.datasets.decoding import UNDECODABLE, Pixels, decode
from fedstage.data.datasets.images import Dataset, Images
from fedstage.data.datasets.splits import Rows, choose_rows
from fedstage.errors import FedstageError
from fedstage.settings.data import ParquetData
from fedstage.storage.tensors import load_table

_IMAGE_COLUMNS = ("img", "image")
_CLIENT_TYPES = (pa.types.is_integer, pa.types.is_string, pa.types.is_large_string)
_BLOCK = 256  # images decoded by a thread at a time


@dataclass(frozen=True)
class _File:
    """A Parquet file: its schema, the name of its image column, and all its labels, int64 [n]."""

    path: Path
    schema: pa.Schema
    image: str
    labels: Rows


def load_parquet(settings: ParquetData, folder: Path) -> Dataset:
    """Read images, labels and, for the training set, clients below the data folder.

    Training files are `train*.parquet`; test files `test*.parquet` or, without any,
    `valid*.parquet`. Images become RGB; only those that the split keeps are decoded. The values of
    `client_column` are numbered 0, 1, ... in sorted order of those that the split keeps.

    Raises
    ------
    FedstageError
        If a file is missing, damaged or lacks a column; if a label, a client or an image is
        invalid; if images differ in shape; or if a size asks for more samples than there are.
    """
    train_paths, test_paths = _find_files(folder / settings.folder)
    train = [_open(path, settings.label) for path in train_paths]
    test = [_open(path, settings.label) for path in test_paths]
    names = _class_names([*train, *test], settings.label)
    rows = choose_rows(settings, _count(train), _count(test))
    images = _images(train, rows.train, settings.image_size, None)
    shape = tuple(images.shape[1:])
    clients = _clients(train, rows.train, settings.client_column)
    test_images = _images(test, rows.test, settings.image_size, shape)
    return Dataset(
        train=Images(images, _labels(train, rows.train), clients),
        test=Images(test_images, _labels(test, rows.test)),
        held_out=_images(train, rows.held_out, settings.image_size, shape),
        server_validation=Images(
            _images(train, rows.server_validation, settings.image_size, shape),
            _labels(train, rows.server_validation),
        ),
        class_names=names,
    )


def _find_files(folder: Path) -> tuple[list[Path], list[Path]]:
    """Find the training and the test files, each in order of their names."""
    if not folder.is_dir():
        raise FedstageError(f"{folder}: no such folder; data.folder is below the data folder")
    train = sorted(folder.glob("train*.parquet"))
    test = sorted(folder.glob("test*.parquet")) or sorted(folder.glob("valid*.parquet"))
    if not train:
        raise FedstageError(f"{folder}: has no train*.parquet")
    if not test:
        raise FedstageError(f"{folder}: has no test*.parquet or valid*.parquet")
    return train, test


# --- files and labels -----------------------------------------------------------------------------


def _open(path: Path, label: str) -> _File:
    schema = _schema(path)
    image = next((name for name in _IMAGE_COLUMNS if name in schema.names), None)
    if image is None:
        raise FedstageError(f"{path}: has no column 'img' or 'image'; {_columns(schema)}")
    kind = schema.field(image).type
    if not (pa.types.is_struct(kind) and kind.get_field_index("bytes") >= 0):
        raise FedstageError(f"{path}: column {image!r} is {kind}, must be struct<bytes, path>")
    return _File(path, schema, image, _read_labels(path, schema, label))


def _schema(path: Path) -> pa.Schema:
    try:
        return pq.read_schema(path)
    except (pa.ArrowException, OSError) as error:
        detail = str(error).splitlines()[0]
        raise FedstageError(f"{path}: truncated, or not a Parquet file ({detail})") from None


def _read_labels(path: Path, schema: pa.Schema, label: str) -> Rows:
    _require(path, schema, label, "data.label")
    if not pa.types.is_integer(schema.field(label).type):
        kind = schema.field(label).type
        raise FedstageError(f"{path}: data.label = {label!r}: column is {kind}, must be integer")
    column = load_table(path, [label]).column(label)
    _refuse_nulls(path, label, column)
    labels: Rows = column.to_numpy().astype(np.int64)
    if not len(labels):
        raise FedstageError(f"{path}: has no rows")
    return labels


def _check_labels(path: Path, name: str, labels: Rows, classes: int) -> None:
    wrong = (labels < 0) | (labels >= classes)
    if wrong.any():
        row = int(wrong.argmax())
        allowed = f"must be 0..{classes - 1}, there are {classes} classes"
        raise FedstageError(f"{path}: row {row}: {name} = {labels[row]}: {allowed}")


def _require(path: Path, schema: pa.Schema, column: str, key: str) -> None:
    if column not in schema.names:
        raise FedstageError(f"{path}: {key} = {column!r}: no such column; {_columns(schema)}")


def _columns(schema: pa.Schema) -> str:
    return f"its columns are {', '.join(schema.names)}"


def _refuse_nulls(path: Path, name: str, column: pa.ChunkedArray) -> None:
    if column.null_count:
        row = pc.index(column.is_null(), True).as_py()
        raise FedstageError(f"{path}: row {row}: {name} = null: a value is required")


# --- names of the classes -------------------------------------------------------------------------


def _class_names(files: Sequence[_File], label: str) -> tuple[str, ...]:
    """Return the names in the files' metadata, or numbers up to the highest label."""
    stated = _stated_names(files[0], label)
    for file in files:
        if _stated_names(file, label) != stated:
            raise FedstageError(f"{file.path}: class names differ from those of {files[0].path}")
    highest = max(int(file.labels.max()) for file in files)
    names = stated or tuple(str(index) for index in range(highest + 1))
    for file in files:
        _check_labels(file.path, label, file.labels, len(names))
    return names


def _stated_names(file: _File, label: str) -> tuple[str, ...] | None:
    key = f"{label}_names"
    names = _metadata(file, key)
    if names is None:
        key = "huggingface"
        names = _feature_names(_metadata(file, key), label)
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


def _feature_names(huggingface: Any, label: str) -> Any:
    """Return the names of a ClassLabel feature, None where the label is of another kind."""
    feature = huggingface
    for key in ("info", "features", label):
        feature = feature.get(key) if isinstance(feature, dict) else None
    return feature.get("names") if isinstance(feature, dict) else None


# --- rows of several files ------------------------------------------------------------------------


def _count(files: Sequence[_File]) -> int:
    return sum(len(file.labels) for file in files)


def _rows_by_file(files: Sequence[_File], rows: Rows) -> Iterator[tuple[_File, Rows]]:
    """Give each file that has some of `rows` (ascending, counted over all files) its own rows."""
    start = 0
    for file in files:
        end = start + len(file.labels)
        own = rows[np.searchsorted(rows, start) : np.searchsorted(rows, end)] - start
        if len(own):
            yield file, own
        start = end


def _labels(files: Sequence[_File], rows: Rows) -> torch.Tensor:
    return torch.from_numpy(np.concatenate([file.labels for file in files])[rows])


def _clients(files: Sequence[_File], rows: Rows, column: str | None) -> torch.Tensor | None:
    if column is None:
        return None
    values: list[int | str] = []
    for file, own in _rows_by_file(files, rows):
        values += _read_clients(file, column, files[0]).take(pa.array(own)).to_pylist()
    numbers = {value: number for number, value in enumerate(sorted(set(values)))}
    return torch.tensor([numbers[value] for value in values], dtype=torch.int64)


def _read_clients(file: _File, column: str, first: _File) -> pa.ChunkedArray:
    _require(file.path, file.schema, column, "data.client_column")
    kind = file.schema.field(column).type
    where = f"{file.path}: data.client_column = {column!r}: column is {kind}"
    if not any(is_one(kind) for is_one in _CLIENT_TYPES):
        raise FedstageError(f"{where}, must be integer or string")
    if pa.types.is_integer(kind) != pa.types.is_integer(first.schema.field(column).type):
        raise FedstageError(f"{where}, in {first.path} it is not")
    clients = load_table(file.path, [column]).column(column)
    _refuse_nulls(file.path, column, clients)
    return clients


# --- images ---------------------------------------------------------------------------------------


def _images(
    files: Sequence[_File], rows: Rows, size: int | None, shape: tuple[int, ...] | None
) -> torch.Tensor:
    """Decode rows to uint8 [n, 3, H, W]; every image has `shape`, or that of the first one."""
    blocks = [np.empty((0, *(shape or ())), np.uint8)] if not len(rows) else []
    for file, own in _rows_by_file(files, rows):
        decoded = _decode_file(file, own, size)
        shape = shape or decoded[0].shape
        _check_shapes(file.path, own, decoded, shape)
        blocks.append(np.stack(decoded))
    return torch.from_numpy(np.concatenate(blocks))


def _check_shapes(path: Path, rows: Rows, images: Sequence[Pixels], shape: tuple[int, ...]) -> None:
    for row, image in zip(rows, images, strict=True):
        if image.shape != shape:
            raise FedstageError(
                f"{path}: row {row}: image of shape {image.shape}, others have {shape}; "
                "set data.image_size to resize all"
            )


def _decode_file(file: _File, rows: Rows, size: int | None) -> list[Pixels]:
    """Decode rows of a file in threads: Pillow lets go of the interpreter while it decodes."""
    encoded = pc.struct_field(load_table(file.path, [file.image]).column(file.image), "bytes")
    blocks = [rows[start : start + _BLOCK] for start in range(0, len(rows), _BLOCK)]
    with ThreadPoolExecutor() as pool:
        decoded = list(pool.map(partial(_decode_rows, file, encoded, size), blocks))
    return [image for block in decoded for image in block]


def _decode_rows(
    file: _File, encoded: pa.ChunkedArray, size: int | None, rows: Rows
) -> list[Pixels]:
    return [_decode_row(file, row, encoded[row].as_py(), size) for row in rows.tolist()]


def _decode_row(file: _File, row: int, encoded: bytes | None, size: int | None) -> Pixels:
    if encoded is None:
        raise FedstageError(f"{file.path}: row {row}: {file.image} has no bytes")
    try:
        return decode(encoded, size)
    except UNDECODABLE as error:
        raise FedstageError(f"{file.path}: row {row}: cannot decode the image ({error})") from None
