"""Tensors as safetensors files, and what each such file, like each table, states of itself.

That is its identity, and a SHA-256 of its content. Readers verify both: a damaged file, and a copy
in place of another file, are refused with one line.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from fedstage.errors import FedstageError
from fedstage.storage.files import identity_of, read_bytes, replacing
from fedstage.weights import Deferred, Entry, Tensors, Weights, shapes_of

if TYPE_CHECKING:  # stages that only read tables do not wait for torch
    import torch


METADATA = "__metadata__"
CHECKSUM = "sha256"
_BLOCK = 2**18  # bytes read at a time: they stay in the processor's cache
_LENGTH = 8  # a safetensors file starts with the header's length, 8 bytes little endian


class Header(NamedTuple):
    """The header of a safetensors file."""

    content: dict[str, Any]  # all of it: an entry for each tensor, and the metadata
    metadata: dict[str, str]
    start: int  # where the payload starts, in bytes from the start of the file
    size: int  # of the payload, in bytes


def read_header(file: BinaryIO) -> Header:
    """Read the header of a safetensors file, without torch; raise ValueError if it is damaged."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    length = int.from_bytes(file.read(_LENGTH), "little")
    content = json.loads(file.read(min(length, size)))
    metadata = content.get(METADATA, {}) if isinstance(content, dict) else None
    start = _LENGTH + length
    if not isinstance(metadata, dict) or start > size:
        raise ValueError("cut off, or not the header of a safetensors file")
    return Header(content, metadata, start, size - start)


def statement(path: str | Path) -> dict[str, str]:
    """Return what the file at `path` states of itself: its identity."""
    identity = identity_of(path)
    return {} if identity is None else {"file": identity}


def check_statement(path: str | Path, stated: Mapping[str, Any]) -> None:
    """Raise FedstageError unless the file at `path` states its identity.

    A folder above may be a link into another folder `results`, so the end of the path counts.
    """
    expected = identity_of(path)
    if expected is None:
        return
    if not f"/{expected}".endswith(f"/{(file := stated.get('file'))}"):
        reason = f"is {file}, not {expected}: a copy in its place"
        raise FedstageError(f"{path}: {reason}; delete it to make it again")


def save_tensors(
    path: str | Path, tensors: Tensors, metadata: Mapping[str, Any] | None = None
) -> None:
    """Write tensors and JSON-serialisable metadata; the same content gives the same bytes.

    Tensors are taken and written one at a time, so deferred tensors need not fit into memory.
    """
    spans = _layout(shapes_of(tensors))
    stated = {**(metadata or {}), **statement(path)}
    texts = {key: json.dumps(value) for key, value in stated.items()}
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
        # An empty array may have a stride of 0, which has no other view.
        return memoryview(bytearray())
    return flat.view(torch.uint8).numpy().data


def _padded(content: Mapping[str, Any]) -> bytes:
    encoded = _encode(content)
    return encoded + b" " * (-len(encoded) % _LENGTH)


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
    return load(raw), metadata


def map_tensors(path: str | Path) -> tuple[Weights, dict[str, Any]]:
    """Read as `load_tensors`, but leave the tensors in the file, whose pages all processes share.

    Writing to a tensor copies the page for this process alone. This is for large files that stay in
    place: a process is killed if a file that it has mapped is truncated.
    """
    from safetensors.torch import load_file

    with _opened(path) as file:
        metadata = verify(path, file)
    return load_file(path), metadata


def open_tensors(path: str | Path) -> tuple[Deferred, dict[str, Any]]:
    """Read as `load_tensors`, but each tensor only when it is taken, and without keeping it."""
    mapped, metadata = map_tensors(path)
    with _opened(path) as file:
        header = read_header(file)
    entries = {}
    for name, tensor in mapped.items():
        place = header.start + header.content[name]["data_offsets"][0]
        like = tensor.to("meta")
        entries[name] = Entry(like, partial(_take, path, place, like))
    return Deferred(entries), metadata


def _take(path: str | Path, place: int, like: "torch.Tensor") -> "torch.Tensor":
    """Read the tensor at a place of a file, of the shape and type of another."""
    import torch

    # Not `empty_like`, which for tensors without data imports sympy: seconds.
    tensor = torch.empty(like.shape, dtype=like.dtype)
    with _opened(path) as file:
        file.seek(place)
        file.readinto(_bytes_of(tensor))
    return tensor


def payload_size(path: str | Path) -> int:
    """Return the bytes of a file's tensors, without torch, after verifying it."""
    with _opened(path) as file:
        verify(path, file)
        return read_header(file).size


@contextmanager
def _opened(path: str | Path) -> Iterator[BufferedReader]:
    try:
        with Path(path).open("rb") as file:
            yield file
    except OSError as error:
        raise FedstageError(f"{path}: {error.strerror}") from None


def verify(path: str | Path, file: BinaryIO) -> dict[str, Any]:
    """Return the metadata of the safetensors file at `path` after verifying its checksum."""
    try:
        header = read_header(file)
        stated = header.metadata.pop(CHECKSUM, None)
        digest = hashlib.sha256(_encode(header.content))
        file.seek(header.start)
        for block in iter(partial(file.read, _BLOCK), b""):
            digest.update(block)
        intact = stated == digest.hexdigest()
        metadata = {key: json.loads(value) for key, value in header.metadata.items()}
    except (ValueError, TypeError, RecursionError):
        intact = False
    if not intact:
        raise FedstageError(describe_damage(path, "a safetensors file with a valid SHA-256"))
    check_statement(path, {"file": metadata.pop("file", None)})
    return metadata


def _encode(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()


def describe_damage(path: str | Path, expected: str) -> str:
    """Return the message for a file that is not what a stage wrote."""
    return f"{path}: truncated or altered, not {expected}; delete it to make it again"
