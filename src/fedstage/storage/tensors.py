"""Tensors as safetensors files, verified at every read.

The metadata of a file hold a SHA-256 over its header and payload, and its identity.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from fedstage.errors import FedstageError
from fedstage.storage.files import read_bytes, replacing
from fedstage.storage.identity import check_statement, statement
from fedstage.weights import Tensors, Weights, shapes_of

if TYPE_CHECKING:  # stages that only read tables do not wait for torch
    import torch


METADATA = "__metadata__"
CHECKSUM = "sha256"
_STATED = ("file", "source")
_BLOCK = 2**18  # bytes read at a time: they stay in the processor's cache
_LENGTH = 8  # a safetensors file starts with the header's length, 8 bytes little endian


class Header(NamedTuple):
    """The header of a safetensors file."""

    content: dict[str, Any]  # all of it: an entry for each tensor, and the metadata
    metadata: dict[str, str]
    spans: list[tuple[int, int]]  # begin and end of each tensor, in bytes from `start`
    start: int  # where the payload starts, in bytes from the start of the file


def read_header(file: BinaryIO) -> Header:
    """Read the header of a safetensors file, without torch; raise ValueError if it is damaged."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    length = int.from_bytes(file.read(_LENGTH), "little")
    content = json.loads(file.read(min(length, size)))
    try:
        metadata = content.get(METADATA, {})
        offsets = [entry["data_offsets"] for name, entry in content.items() if name != METADATA]
        spans = [(int(begin), int(end)) for begin, end in offsets]
    except (KeyError, TypeError, AttributeError, OverflowError):
        raise ValueError("not the header of a safetensors file") from None
    if not isinstance(metadata, dict) or _LENGTH + length > size:
        raise ValueError("cut off, or not the header of a safetensors file")
    return Header(content, metadata, spans, _LENGTH + length)


def save_tensors(
    path: str | Path, tensors: Tensors, metadata: Mapping[str, Any] | None = None
) -> None:
    """Write tensors and JSON-serialisable metadata; the same content gives the same bytes.

    Tensors are taken and written one at a time, so deferred tensors need not fit into memory.
    """
    spans = _layout(shapes_of(tensors))
    texts = _texts(path, metadata or {})
    content = {**spans, METADATA: texts}
    digest = hashlib.sha256(_encode(content))
    texts[CHECKSUM] = digest.hexdigest()  # a placeholder as long as the checksum
    start = _LENGTH + len(_padded(content))
    with replacing(path) as temporary, temporary.open("wb") as file:
        file.seek(start)
        for name in spans:
            raw = _bytes_of(tensors[name])
            digest.update(raw)
            file.write(raw)
        texts[CHECKSUM] = digest.hexdigest()
        encoded = _padded(content)
        file.seek(0)
        file.writelines([len(encoded).to_bytes(_LENGTH, "little"), encoded])


def _layout(shapes: Weights) -> dict[str, Any]:
    """Return the header's entry of each tensor, in the order of safetensors' own files."""
    import torch
    from safetensors.torch import save

    names = list(shapes)
    empty = save({name: torch.empty(0, dtype=shapes[name].dtype) for name in names})
    content = read_header(BytesIO(empty)).content
    content.pop(METADATA, None)
    end = 0
    for name, entry in content.items():
        begin, end = end, end + shapes[name].nbytes
        entry |= {"shape": list(shapes[name].shape), "data_offsets": [begin, end]}
    return content


def _bytes_of(tensor: "torch.Tensor") -> memoryview:
    import torch

    flat = tensor.detach().cpu().contiguous().reshape(-1)
    if not len(flat):
        return memoryview(b"")  # an empty array may have a stride of 0, which has no other view
    return flat.view(torch.uint8).numpy().data


def _padded(content: Mapping[str, Any]) -> bytes:
    encoded = _encode(content)
    return encoded + b" " * (-len(encoded) % _LENGTH)


def _texts(path: str | Path, metadata: Mapping[str, Any]) -> dict[str, str]:
    """Return the metadata of the file at `path`, with its identity, as texts."""
    stated = {**metadata, **statement(path)}
    return {key: json.dumps(value) for key, value in stated.items()}


def load_tensors(path: str | Path) -> tuple[Weights, dict[str, Any]]:
    """Read tensors (onto the CPU) and metadata.

    Raises
    ------
    FedstageError
        If the file is missing or damaged, or belongs to another path.
    """
    from safetensors.torch import load

    raw = read_bytes(path)
    metadata = verify(path, BytesIO(raw))
    return _parsed(path, partial(load, raw)), metadata


def map_tensors(path: str | Path) -> tuple[Weights, dict[str, Any]]:
    """Read as `load_tensors`, but leave the tensors in the file, whose pages all processes share.

    Writing to a tensor copies the page for this process alone. This is for large files that stay in
    place: a process is killed if a file that it has mapped is truncated.
    """
    from safetensors.torch import load_file

    try:
        with Path(path).open("rb") as file:
            metadata = verify(path, file)
    except OSError as error:
        raise FedstageError(f"{path}: {error.strerror}") from None
    return _parsed(path, partial(load_file, path)), metadata


def _parsed(path: str | Path, load: Callable[[], Weights]) -> Weights:
    """Return what `load` returns; FedstageError if the header, although intact, is invalid."""
    from safetensors import SafetensorError

    try:
        return load()
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        detail = " ".join(str(error).split())
        raise FedstageError(describe_damage(path, "a safetensors file", detail)) from None


def verified_spans(path: str | Path) -> list[tuple[int, int]]:
    """Return begin and end of each tensor of a file, in bytes of its payload, without torch.

    Raises
    ------
    FedstageError
        If the file is missing or damaged, or belongs to another path.
    """
    try:
        with Path(path).open("rb") as file:
            verify(path, file)
            return read_header(file).spans
    except OSError as error:
        raise FedstageError(f"{path}: {error.strerror}") from None


def verify(path: str | Path, file: BinaryIO) -> dict[str, Any]:
    """Return the metadata of the safetensors file at `path` after verifying its checksum."""
    try:
        header = read_header(file)
        stated = header.metadata.pop(CHECKSUM, None)
        file.seek(header.start)
        blocks = iter(partial(file.read, _BLOCK), b"")
        intact = stated == _checksum(header.content, blocks)
        metadata = {key: json.loads(value) for key, value in header.metadata.items()}
    except (ValueError, TypeError, RecursionError):
        intact = False
    if not intact:
        raise FedstageError(describe_damage(path, "a safetensors file with a valid SHA-256"))
    check_statement(path, {key: metadata.pop(key, None) for key in _STATED})
    return metadata


def _checksum(content: Mapping[str, Any], payload: Iterable[bytes | memoryview]) -> str:
    digest = hashlib.sha256(_encode(content))
    for block in payload:
        digest.update(block)
    return digest.hexdigest()


def _encode(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()


def describe_damage(path: str | Path, expected: str, detail: str = "") -> str:
    """Return the message for a file that is not what a stage wrote."""
    reason = f" ({detail})" if detail else ""
    return f"{path}: truncated or altered, not {expected}{reason}; delete it to make it again"
