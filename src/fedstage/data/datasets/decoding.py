"""Decoding of images to pixels."""

import logging
import os
import re
import struct
import zlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from io import BytesIO
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageFile, ImageOps, UnidentifiedImageError

from fedstage.errors import FedstageError, each

_LOGGER = logging.getLogger(__name__)

Pixels: TypeAlias = NDArray[np.uint8]
#: The places of some images, for messages, and a function of an image's number that reads it.
Encoded: TypeAlias = tuple[Sequence[str], Callable[[int], bytes | None]]

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
_HIGHEST = 255  # of a channel
_BITS, _BANDS, _SAMPLES = 258, 277, 339  # tags of TIFF
_UNSIGNED = 1

#: Formats whose first bytes name them: Pillow would begin to read a WebP image as several others.
_USUAL = ("JPEG", "PNG", "WEBP", "TIFF")

_FILTERS = {"bilinear": Image.Resampling.BILINEAR, "area": Image.Resampling.BOX}


@dataclass
class Decoder:
    """Decodes images to RGB, uint8 [3, H, W], all of the shape of the first one.

    `size` and `resampling` are as in `fedstage.settings.data.Resized`. With `crop`, the middle
    crop x crop pixels are kept. Images are turned as their EXIF data say. What is left out of
    images is counted, for `tell`.
    """

    size: int | None = None
    resampling: str = "bilinear"
    crop: int | None = None
    shape: tuple[int, ...] | None = None
    left_out: dict[str, set[str]] = field(default_factory=dict)  #: and the images' places

    def decode(self, encoded: bytes | None, where: str = "") -> Pixels:
        """Decode an image; FedstageError if that fails, or if it has another shape."""
        if encoded is None:
            raise FedstageError(f"{where}: image has no bytes")
        try:
            with _opened(encoded) as opened:
                image = np.asarray(self._prepared(opened, where)).transpose(2, 0, 1)
        except UNDECODABLE as error:
            detail = str(error).partition(" <_io")[0]  # an address in memory
            raise FedstageError(f"{where}: cannot decode the image ({detail})") from None
        self.shape = self.shape or image.shape
        if image.shape != self.shape:
            others = f"others have {self.shape}; set data.image_size to resize all"
            raise FedstageError(f"{where}: image of shape {image.shape}, {others}")
        return image

    def _prepared(self, opened: ImageFile.ImageFile, where: str) -> Image.Image:
        width, height = opened.size
        if width * height > _MOST_PIXELS:
            raise ValueError(f"{width} x {height} pixels: at most {_MOST_PIXELS:,} are read")
        if _is_deep(opened):  # Pillow would cut values off
            raise ValueError(f"mode {opened.mode}: must have 8 bits a channel")
        if _in_tiff(opened, _SAMPLES) > _UNSIGNED:
            raise ValueError("numbers with a sign: must be from 0 to 255")
        if getattr(opened, "is_animated", False):
            self.left_out.setdefault("pages or frames after the first", set()).add(where)
        if opened.has_transparency_data:
            self.left_out.setdefault("transparency", set()).add(where)
        elif _in_tiff(opened, _BANDS) > len(opened.getbands()) or opened.mode == "RGBX":
            self.left_out.setdefault("further bands", set()).add(where)
        image = ImageOps.exif_transpose(opened).convert("RGB")
        if self.size is not None and image.size != (self.size, self.size):
            image = image.resize((self.size, self.size), _FILTERS[self.resampling])
        if self.crop is None:
            return image
        if min(image.size) < self.crop:
            raise ValueError(f"{width} x {height} pixels: data.crop = {self.crop} is more")
        left, top = ((side - self.crop) // 2 for side in image.size)
        return image.crop((left, top, left + self.crop, top + self.crop))

    def decode_all(self, count: int, parts: Iterable[Encoded]) -> torch.Tensor:
        """Decode `count` images, which come in parts, in threads; return uint8 [n, 3, H, W].

        Raises
        ------
        FedstageError
            If images cannot be decoded, or differ in shape; all are told.
        """
        pixels, done = np.empty((count, *(self.shape or (3, 0, 0))), np.uint8), 0
        for places, encoded in parts:
            if self.shape is None:
                pixels = np.empty((count, *self.decode(encoded(0), places[0]).shape), np.uint8)
            own = pixels[done : done + len(places)]

            def decode(number: int, own: Pixels = own, part: Encoded = (places, encoded)) -> None:
                own[number] = self.decode(part[1](number), part[0][number])

            with ThreadPoolExecutor(_cores()) as pool:
                large = own.shape[2] * own.shape[3] >= _WORTH_THREADS
                each(decode, range(len(places)), pool.map if large else map)
            done += len(places)
        return torch.from_numpy(pixels)

    def tell(self) -> None:
        """Say of how many images something was left out."""
        for what, places in self.left_out.items():
            images = "1 image" if len(places) == 1 else f"{len(places)} images"
            _LOGGER.warning("%s: %s left out, such as of %s", images, what, min(places))


def _opened(encoded: bytes) -> ImageFile.ImageFile:
    try:
        return Image.open(BytesIO(encoded), formats=_USUAL)
    except UnidentifiedImageError:
        return Image.open(BytesIO(encoded))


def _is_deep(image: ImageFile.ImageFile) -> bool:
    """Whether a file has more than 8 bits a channel, which the mode does not always show."""
    # Of PPM, Pillow's decoder has the highest value as its last argument.
    highest = max(re.findall(r"'ppm(?:_plain)?'.*, (\d+)\)", str(image.tile)), default="0")
    deep = (
        re.search("(?<!BGR);16", str(image.tile)) is not None
        or _in_tiff(image, _BITS) > _HIGHEST.bit_length()
    )
    return deep or image.mode[0] in "IF" or int(highest) > _HIGHEST


def _in_tiff(image: ImageFile.ImageFile, tag: int) -> int:
    """Return the highest value of a tag of a TIFF file, 0 of others."""
    value = getattr(image, "tag_v2", {}).get(tag, 0)
    return max(value) if isinstance(value, tuple) else int(value)


def _cores() -> int:
    """Return the number of cores that the job may use."""
    linux = hasattr(os, "sched_getaffinity")
    return len(os.sched_getaffinity(0)) if linux else os.cpu_count() or 1
