"""The content of a file, regardless of its name, by which copies of artefacts are found."""

import gzip
import hashlib
import os
import zlib
from contextlib import suppress
from dataclasses import dataclass
from io import BufferedRandom, BufferedReader
from pathlib import Path
from tempfile import TemporaryFile

from fedstage.storage.provenance import DIGITS
from fedstage.storage.tensors import CHECKSUM, read_header

_GZIP = b"\x1f\x8b"
#: The first bytes of files that pack others: zip (also npz), bzip2, xz, Zstandard and 7-Zip.
_PACKED = (b"PK\x03\x04", b"BZh", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf\x27\x1c")
_TAR = 257, b"ustar"  # offset and magic number of a tar
_BLOCK = 2**20


@dataclass(frozen=True)
class Content:
    """What is known about a file's content."""

    digests: frozenset[str]  # that records may have for it, packed by gzip or not
    whole: bool  # whether all of it was read, which excludes other archives


def content_of(path: Path) -> Content:
    """Return the digests of a file, as records have them, and of its content if it is gzipped.

    The SHA-256 in a safetensors header counts even if the file is cut off.
    """
    with path.open("rb") as file:
        own = _content(file)
        if not _starts_with(file, (_GZIP,)):
            return own
        with TemporaryFile() as unpacked:
            ended = _unpack(file, unpacked)
            inner = _content(unpacked)
            twice = _starts_with(unpacked, (_GZIP,))
    return Content(own.digests | inner.digests, inner.whole and ended and not twice)


def _content(file: BufferedReader | BufferedRandom) -> Content:
    if not file.seek(0, os.SEEK_END):  # all empty files have the same digest
        return Content(frozenset(), whole=True)
    file.seek(0)
    digests = {hashlib.file_digest(file, "sha256").hexdigest()[:DIGITS]}
    with suppress(ValueError, KeyError):
        digests.add(str(read_header(file).metadata[CHECKSUM])[:DIGITS])
    file.seek(_TAR[0])
    tar = file.read(len(_TAR[1])) == _TAR[1]
    return Content(frozenset(digests), not tar and not _starts_with(file, _PACKED))


def _starts_with(file: BufferedReader | BufferedRandom, beginnings: tuple[bytes, ...]) -> bool:
    file.seek(0)
    return file.read(max(map(len, beginnings))).startswith(beginnings)


def _unpack(file: BufferedReader | BufferedRandom, unpacked: BufferedRandom) -> bool:
    """Unpack a gzip file as far as it can be read; return whether it is complete."""
    file.seek(0)
    try:
        with gzip.open(file) as packed:
            # Not `read`, which returns nothing of a file that is cut off.
            while block := packed.read1(_BLOCK):
                unpacked.write(block)
    except (EOFError, gzip.BadGzipFile, zlib.error):
        return False
    finally:
        unpacked.seek(0, os.SEEK_END)
    return True
