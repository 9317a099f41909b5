"""Tensors that are read from their file one at a time, when they are needed.

The checksum of the whole file is verified first. A tensor is refused if the file has been replaced
or changed by the time it is taken.
"""

import os
from collections.abc import Sequence
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedstage.errors import FedstageError
from fedstage.storage.tensors import METADATA, describe_damage, read_header, verify
from fedstage.weights import Deferred, Entry

if TYPE_CHECKING:
    import torch

#: Bytes of small tensors that stay in memory: per file, and for all files that are read together.
KEPT, KEPT_TOGETHER = 2**20, 2**22

_Stamp = tuple[int, int, int, int]

#: Torch's name of each type, by its name in safetensors.
_TYPES = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "I16": "int16", "I32": "int32", "I64": "int64",
    "U32": "uint32",
    "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64",
}  # fmt: skip


def open_all(paths: Sequence[str | Path]) -> list[tuple[Deferred, dict[str, Any]]]:
    """Return the tensors and metadata of files that are read together."""
    return [open_tensors(path, KEPT_TOGETHER // len(paths)) for path in paths]


def open_tensors(path: str | Path, kept: int = KEPT) -> tuple[Deferred, dict[str, Any]]:
    """Return the tensors of a file, which are read one by one when taken, and the metadata.

    The smallest tensors, up to `kept` bytes in total, are read at once. For small models these are
    all tensors, so their files are opened only once.

    Raises
    ------
    FedstageError
        If the file is damaged, or has changed by the time a tensor is taken.
    """
    try:
        with Path(path).open("rb") as file:
            stamp = _stamp(file)
            metadata = verify(path, file)
            return Deferred(_entries(path, file, stamp, kept)), metadata
    except OSError as error:
        raise FedstageError(f"{path}: {error.strerror}") from None
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        detail = " ".join(str(error).split())  # the header is intact, but invalid
        raise FedstageError(describe_damage(path, "a safetensors file", detail)) from None


def _entries(path: str | Path, file: BufferedReader, stamp: _Stamp, kept: int) -> dict[str, Entry]:
    """Return the entry of each tensor of a verified file."""
    import torch

    header = read_header(file)
    stored = {name: entry for name, entry in header.content.items() if name != METADATA}
    entries = {}
    for name, entry in sorted(stored.items(), key=lambda item: _size(item[1])):
        like = torch.empty(
            entry["shape"], dtype=getattr(torch, _TYPES[entry["dtype"]]), device="meta"
        )
        place = header.start + entry["data_offsets"][0]
        kept -= _size(entry)
        if kept >= 0:
            tensor = _read(file, place, like)
            entries[name] = Entry(tensor, partial(torch.Tensor.detach, tensor))
        else:
            entries[name] = Entry(like, partial(_take, path, stamp, place, like))
    return {name: entries[name] for name in stored}


def _size(stored: dict[str, Any]) -> int:
    begin, end = stored["data_offsets"]
    return int(end - begin)


def _take(path: str | Path, stamp: _Stamp, place: int, like: "torch.Tensor") -> "torch.Tensor":
    """Read a tensor of a file; FedstageError if its stamp has changed."""
    try:
        with Path(path).open("rb") as file:
            if _stamp(file) == stamp:
                return _read(file, place, like)
    except OSError as error:
        raise FedstageError(f"{path}: {error.strerror}") from None
    raise FedstageError(describe_damage(path, "the file that it was", "changed while it was read"))


def _read(file: BufferedReader, place: int, like: "torch.Tensor") -> "torch.Tensor":
    import torch

    if not like.nbytes:
        return torch.empty(like.shape, dtype=like.dtype)
    raw = torch.empty(like.nbytes, dtype=torch.uint8)
    view, done = raw.numpy().data, 0
    file.seek(place)
    while done < like.nbytes:
        read = file.readinto(view[done:])
        if not read:
            raise OSError(0, "cut off while it was read")
        done += read
    return raw.view(like.dtype).reshape(like.shape)


def _stamp(file: BufferedReader) -> _Stamp:
    found = os.fstat(file.fileno())
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
