"""Tensors as safetensors files, verified at every read.

The metadata of a file hold a SHA-256 over its header and payload, and which file it is.
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
from fedstage.storage.identity import check_identity, identity_of
from fedstage.weights import Weights

if TYPE_CHECKING:  # stages that only read tables do not wait for torch
    import torch


_METADATA = "__metadata__"
CHECKSUM = "sha256"
_IDENTITY = "file"
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
        metadata = content.get(_METADATA, {})
        offsets = [entry["data_offsets"] for name, entry in content.items() if name != _METADATA]
        spans = [(int(begin), int(end)) for begin, end in offsets]
    except (KeyError, TypeError, AttributeError, OverflowError):
        raise ValueError("not the header of a safetensors file") from None
    if not isinstance(metadata, dict) or _LENGTH + length > size:
        raise ValueError("cut off, or not the header of a safetensors file")
    return Header(content, metadata, spans, _LENGTH + length)


def save_tensors(
    path: str | Path,
    tensors: Mapping[str, "torch.Tensor"],
    metadata: Mapping[str, Any] | None = None,
) -> None:
    """Write tensors and JSON-serialisable metadata; the same content gives the same bytes."""
    from safetensors.torch import save

    contiguous = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    raw = save(contiguous)
    header = read_header(BytesIO(raw))
    payload = memoryview(raw)[header.start :]
    texts = _texts(path, metadata or {})
    content = header.content | {_METADATA: texts}
    texts[CHECKSUM] = _checksum(content, [payload])
    encoded = _encode(content)
    encoded += b" " * (-len(encoded) % _LENGTH)
    with replacing(path) as temporary, temporary.open("wb") as file:
        file.writelines([len(encoded).to_bytes(_LENGTH, "little"), encoded, payload])


def _texts(path: str | Path, metadata: Mapping[str, Any]) -> dict[str, str]:
    """Return the metadata of the file at `path`, which state which file it is, as texts."""
    identity = identity_of(path)
    stated = {} if identity is None else {_IDENTITY: identity}
    return {key: json.dumps(value) for key, value in {**metadata, **stated}.items()}


def load_tensors(path: str | Path) -> tuple[Weights, dict[str, Any]]:
    """Read tensors, onto the CPU, and metadata.

    Raises
    ------
    FedstageError
        If the file is missing or damaged, or another one than that of this path.
    """
    from safetensors.torch import load

    raw = read_bytes(path)
    metadata = _verify(path, BytesIO(raw))
    return _parsed(path, partial(load, raw)), metadata


def map_tensors(path: str | Path) -> tuple[Weights, dict[str, Any]]:
    """Read as `load_tensors`, but leave the tensors in the file, whose pages all processes share.

    Writing to a tensor copies the page for this process alone. For large files that stay where they
    are: a process ends if a file that it has mapped is cut off.
    """
    from safetensors.torch import load_file

    try:
        with Path(path).open("rb") as file:
            metadata = _verify(path, file)
    except OSError as error:
        raise FedstageError(f"{path}: {error.strerror}") from None
    return _parsed(path, partial(load_file, path)), metadata


def _parsed(path: str | Path, load: Callable[[], Weights]) -> Weights:
    """Return what `load` returns; FedstageError if the header, although intact, makes no sense."""
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
        If the file is missing or damaged, or another one than that of this path.
    """
    try:
        with Path(path).open("rb") as file:
            _verify(path, file)
            return read_header(file).spans
    except OSError as error:
        raise FedstageError(f"{path}: {error.strerror}") from None


def _verify(path: str | Path, file: BinaryIO) -> dict[str, Any]:
    """Return the metadata of the safetensors file at `path` whose checksum is right."""
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
    check_identity(path, metadata.pop(_IDENTITY, None))
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
