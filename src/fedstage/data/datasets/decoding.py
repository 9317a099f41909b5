"""Decoding of images to pixels."""

import os
import struct
import zlib
from collections.abc import Sequence
from io import BytesIO
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from fedstage.data.datasets.small_images import decode_small, is_small

Pixels: TypeAlias = NDArray[np.uint8]

#: Pillow's exceptions for damaged or hostile images (found by altering and truncating valid ones).
UNDECODABLE = (
    OSError, SyntaxError, ValueError, EOFError, struct.error, zlib.error,
    Image.DecompressionBombError,
)  # fmt: skip


#: Pixels of an image from which on Pillow is faster in threads. It releases the interpreter's lock
#: for the pixels only, and threads that wait for each other's lock are slower than one.
_WORTH_THREADS = 100 * 100
#: Pixels of an image at most: decoding takes three bytes for each.
_MOST_PIXELS = 50_000_000

_FILTERS = {"bilinear": Image.Resampling.BILINEAR, "area": Image.Resampling.BOX}


def decode(encoded: bytes, size: int | None = None, resampling: str = "bilinear") -> Pixels:
    """Decode an image to RGB, uint8 [3, H, W], resized to size x size if given.

    `resampling` is ``bilinear`` or ``area``, as `fedstage.settings.data.ParquetData` has it.
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
        image = opened if opened.mode == "RGB" else opened.convert("RGB")
        if size is not None and image.size != (size, size):
            image = image.resize((size, size), _FILTERS[resampling])
        return np.asarray(image).transpose(2, 0, 1)


def threads(encoded: bytes, shape: Sequence[int]) -> int:
    """Return in how many threads to decode images like this one, which has `shape` [3, H, W]."""
    if is_small(encoded) or shape[1] * shape[2] >= _WORTH_THREADS:
        linux = hasattr(os, "sched_getaffinity")
        return len(os.sched_getaffinity(0)) if linux else os.cpu_count() or 1
    return 1
