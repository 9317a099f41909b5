"""Decoding of images to pixels."""

import logging
import os
import re
import struct
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from io import BytesIO
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFile, ImageOps

from fedstage.errors import FedstageError, each

_LOGGER = logging.getLogger(__name__)

Pixels: TypeAlias = NDArray[np.uint8]
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
_HIGHEST = 255  # of a channel

_FILTERS = {"bilinear": Image.Resampling.BILINEAR, "area": Image.Resampling.BOX}


@dataclass
class Decoder:
    """Decodes images to RGB, uint8 [3, H, W], resized to size x size if given.

    `resampling` is ``bilinear`` or ``area``, as in `fedstage.settings.data.Resized`. Images are
    turned as their EXIF data say. What is left out of images is counted, for `tell`.
    """

    size: int | None = None
    resampling: str = "bilinear"
    left_out: dict[str, list[str]] = field(default_factory=dict)  #: and the images' places

    def decode(self, encoded: bytes, where: str = "") -> Pixels:
        """Decode an image; raise one of UNDECODABLE if that fails."""
        with Image.open(BytesIO(encoded)) as opened:
            if opened.width * opened.height > _MOST_PIXELS:
                raise ValueError(
                    f"{opened.width} x {opened.height} pixels: at most {_MOST_PIXELS:,} are read"
                )
            if _is_deep(opened):  # Pillow would cut values off
                raise ValueError(f"mode {opened.mode}: must have 8 bits a channel")
            if getattr(opened, "is_animated", False):
                self.left_out.setdefault("pages or frames after the first", []).append(where)
            if opened.has_transparency_data:
                self.left_out.setdefault("transparency", []).append(where)
            turned = ImageOps.exif_transpose(opened)
            image = turned if turned.mode == "RGB" else turned.convert("RGB")
            if self.size is not None and image.size != (self.size, self.size):
                image = image.resize((self.size, self.size), _FILTERS[self.resampling])
            return np.asarray(image).transpose(2, 0, 1)

    def decode_one(self, encoded: bytes | None, where: str) -> Pixels:
        """Decode an image; raise FedstageError, beginning with `where`, if that fails."""
        if encoded is None:
            raise FedstageError(f"{where}: image has no bytes")
        try:
            return self.decode(encoded, where)
        except UNDECODABLE as error:
            detail = str(error).partition(" <_io")[0]  # an address in memory
            raise FedstageError(f"{where}: cannot decode the image ({detail})") from None

    def tell(self) -> None:
        """Say of how many images something was left out."""
        for what, places in self.left_out.items():
            different = sorted(set(places))
            images = "1 image" if len(different) == 1 else f"{len(different)} images"
            _LOGGER.warning("%s: %s left out, such as of %s", images, what, different[0])


def _is_deep(image: ImageFile.ImageFile) -> bool:
    """Whether a file has more than 8 bits a channel, which the mode does not always show."""
    # Of PPM, Pillow's decoder has the highest value as its last argument.
    highest = max(re.findall(r"'ppm'.*, (\d+)\)", str(image.tile)), default="0")
    return image.mode[0] in "IF" or ";16" in str(image.tile) or int(highest) > _HIGHEST


def _threads(shape: Sequence[int]) -> int:
    """Return the number of threads to decode images of `shape` [3, H, W]."""
    if shape[1] * shape[2] < _WORTH_THREADS:
        return 1
    linux = hasattr(os, "sched_getaffinity")
    return len(os.sched_getaffinity(0)) if linux else os.cpu_count() or 1


def decode_all(
    pixels: Pixels, encoded: Reader, where: Callable[[int], str], decoder: Decoder
) -> None:
    """Decode image n to ``pixels[n]``, for all of `pixels` [n, 3, H, W], in threads.

    Raises
    ------
    FedstageError
        If images cannot be decoded, or have a different shape than `pixels`.
    """

    def decode_one(number: int) -> None:
        image = decoder.decode_one(encoded(number), where(number))
        if image.shape != pixels.shape[1:]:
            raise FedstageError(
                f"{where(number)}: image of shape {image.shape}, others have "
                f"{pixels.shape[1:]}; set data.image_size to resize all"
            )
        pixels[number] = image

    parts = [range(len(pixels))[start:][:_AT_ONCE] for start in range(0, len(pixels), _AT_ONCE)]
    with ThreadPoolExecutor(_threads(pixels.shape[1:])) as pool:
        each(lambda part: each(decode_one, part), parts, pool.map)
