"""Small lossless images, decoded by torchvision without the interpreter's lock.

Pillow needs the lock for most of the work on a small image, so that two threads are slower than
one. Lossless images have the same pixels with every decoder.
"""

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

import torch

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
