"""Decoding of images to pixels."""

import struct
import zlib
from io import BytesIO
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Pixels: TypeAlias = NDArray[np.uint8]

#: Pillow's exceptions for damaged or hostile images (found by altering and truncating valid ones).
UNDECODABLE = (
    OSError, SyntaxError, ValueError, EOFError, struct.error, zlib.error,
    Image.DecompressionBombError,
)  # fmt: skip


def decode(encoded: bytes, size: int | None = None) -> Pixels:
    """Decode an image to RGB, uint8 [3, H, W], resized (bilinear) to size x size if given."""
    with Image.open(BytesIO(encoded)) as opened:
        image = opened.convert("RGB")
    if size is not None and image.size != (size, size):
        image = image.resize((size, size), Image.Resampling.BILINEAR)
    return np.ascontiguousarray(np.asarray(image).transpose(2, 0, 1))
