"""Decoding of images to pixels."""

import os
import struct
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from fedstage.errors import FedstageError

Pixels: TypeAlias = NDArray[np.uint8]
Decode: TypeAlias = Callable[[bytes], Pixels]
Reader: TypeAlias = Callable[[int], bytes | None]  # of the encoded image with a number

#: Pillow's exceptions for damaged or hostile images (found by altering and truncating valid ones).
UNDECODABLE = (
    OSError, SyntaxError, ValueError, EOFError, struct.error, zlib.error,
    Image.DecompressionBombError,
)  # fmt: skip


#: Number of pixels of an image from which Pillow is faster in threads. It releases the
#: interpreter's lock for the pixels only, and threads that wait for each other's lock are slower
#: than one.
_WORTH_THREADS = 100 * 100
#: The most pixels of an image: decoding takes three bytes for each.
_MOST_PIXELS = 50_000_000
Image.MAX_IMAGE_PIXELS = None  # Pillow would warn of images that are refused here
_AT_ONCE = 100  # images that a thread decodes at a time

_FILTERS = {"bilinear": Image.Resampling.BILINEAR, "area": Image.Resampling.BOX}


def decode(encoded: bytes, size: int | None = None, resampling: str = "bilinear") -> Pixels:
    """Decode an image to RGB, uint8 [3, H, W], resized to size x size if given.

    `resampling` is ``bilinear`` or ``area``, as in `fedstage.settings.data.Resized`.
    """
    small = decode_small(encoded)
    if small is not None and (size is None or small.shape[1:] == (size, size)):
        pixels: Pixels = small.numpy()
        return pixels
    with Image.open(BytesIO(encoded)) as opened:
        if opened.width * opened.height > _MOST_PIXELS:
            raise ValueError(
                f"{opened.width} x {opened.height} pixels: at most {_MOST_PIXELS:,} are read"
            )
        if opened.mode.startswith(("I", "F")):  # Pillow would cut off values above 255
            raise ValueError(f"mode {opened.mode}: must have 8 bits a channel")
        image = opened if opened.mode == "RGB" else opened.convert("RGB")
        if size is not None and image.size != (size, size):
            image = image.resize((size, size), _FILTERS[resampling])
        return np.asarray(image).transpose(2, 0, 1)


def threads(encoded: bytes, shape: Sequence[int]) -> int:
    """Return the number of threads to decode images like this one, which has `shape` [3, H, W]."""
    if is_small(encoded) or shape[1] * shape[2] >= _WORTH_THREADS:
        linux = hasattr(os, "sched_getaffinity")
        return len(os.sched_getaffinity(0)) if linux else os.cpu_count() or 1
    return 1


def decode_one(encoded: bytes | None, where: str, decoded: Decode) -> Pixels:
    """Decode an image; raise FedstageError, beginning with `where`, if that fails."""
    if encoded is None:
        raise FedstageError(f"{where}: image has no bytes")
    try:
        return decoded(encoded)
    except UNDECODABLE as error:
        detail = str(error).partition(" <_io")[0]  # an address in memory
        raise FedstageError(f"{where}: cannot decode the image ({detail})") from None


def decode_all(
    pixels: Pixels,
    encoded: Reader,
    where: Callable[[int], str],
    decoded: Decode,
) -> None:
    """Decode image n to ``pixels[n]``, for all of `pixels` [n, 3, H, W], in threads.

    Raises
    ------
    FedstageError
        If an image cannot be decoded, or has a different shape than `pixels`.
    """

    def decode_some(numbers: range) -> None:
        for number in numbers:
            image = decode_one(encoded(number), where(number), decoded)
            if image.shape != pixels.shape[1:]:
                raise FedstageError(
                    f"{where(number)}: image of shape {image.shape}, others have "
                    f"{pixels.shape[1:]}; set data.image_size to resize all"
                )
            pixels[number] = image

    if len(pixels):
        parts = [range(len(pixels))[start:][:_AT_ONCE] for start in range(0, len(pixels), _AT_ONCE)]
        with ThreadPoolExecutor(threads(encoded(0) or b"", pixels.shape[1:])) as pool:
            list(pool.map(decode_some, parts))


# --- small images ---------------------------------------------------------------------------------
#
# Small lossless images, decoded by torchvision without the interpreter's lock.
#
# Pillow needs the lock for most of the work on a small image, so that two threads are slower than
# one. Lossless images have the same pixels with every decoder.

_LARGEST = 128  # pixels per side; with larger images Pillow's threads do help
_RGB = 3  # torchvision's mode
_PNG, _WEBP = b"\x89PNG\r\n\x1a\n", b"RIFF"
_PLAIN_PNG = bytes([8, 2, 0, 0, 0])  # 8 bits, RGB, the one compression and filter, not interlaced

Decoder: TypeAlias = Callable[[torch.Tensor, int], torch.Tensor]


def decode_small(encoded: bytes) -> torch.Tensor | None:
    """Decode an image to RGB, uint8 [3, H, W]; None if it is of another kind, or damaged."""
    kind = _kind(encoded)
    decoder = _decoders().get(kind) if kind else None
    if decoder is None:
        return None
    try:
        return decoder(torch.frombuffer(bytearray(encoded), dtype=torch.uint8), _RGB)
    except RuntimeError:  # Pillow reports what is wrong
        return None


def is_small(encoded: bytes) -> bool:
    """Whether an image is for `decode_small`."""
    return _kind(encoded) in _decoders()


def _kind(encoded: bytes) -> str | None:
    """Return `png` or `webp` for a small lossless image without transparency, else None."""
    if encoded.startswith(_PNG) and encoded[12:16] == b"IHDR" and encoded[24:29] == _PLAIN_PNG:
        sides = (int.from_bytes(encoded[16:20]), int.from_bytes(encoded[20:24]))
        kind = "png"
    elif encoded.startswith(_WEBP) and encoded[8:16] == b"WEBPVP8L" and len(encoded) > 25:
        # After the length and a signature: width - 1 and height - 1 in 14 bits each, then whether
        # there is transparency.
        bits = int.from_bytes(encoded[21:25], "little")
        if bits >> 28 & 1:
            return None
        sides = ((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
        kind = "webp"
    else:
        return None
    return kind if max(sides) <= _LARGEST else None


@cache
def _decoders() -> dict[str | None, Decoder]:
    """Return torchvision's decoders, from its library: the package takes 2 s to import."""
    package = find_spec("torchvision")
    folder = Path(package.origin).parent if package and package.origin else None
    libraries = sorted(folder.glob("image*.so")) if folder else []
    try:
        for library in libraries:
            torch.ops.load_library(str(library))
        operators: Any = torch.ops.image
        return {"png": operators.decode_png, "webp": operators.decode_webp}
    except (OSError, AttributeError):  # not built with them, or for another system: use Pillow
        return {}
