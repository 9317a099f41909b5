import struct
import zlib
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from fedstage.data.datasets.decoding import Decoder
from fedstage.errors import FedstageError

PIXELS = np.random.default_rng(3).integers(0, 256, (9, 14, 3), dtype=np.uint8)
LOSSLESS = {"PNG": {}, "WEBP": {"lossless": True}}


def encoded(image_format, mode="RGB", pixels=PIXELS, **options):
    buffer = BytesIO()
    Image.fromarray(pixels).convert(mode).save(buffer, image_format, **options)
    return buffer.getvalue()


@pytest.mark.parametrize("image_format", LOSSLESS)
def test_an_image_that_is_cut_off_is_refused_or_whole(image_format):
    lossless = encoded(image_format, **LOSSLESS[image_format])
    for length in range(len(lossless)):
        try:
            found = Decoder().decode(lossless[:length])
            assert np.array_equal(found, PIXELS.transpose(2, 0, 1)), length
        except FedstageError:
            continue


def chunk(name, content):
    crc = struct.pack(">I", zlib.crc32(name + content))
    return struct.pack(">I", len(content)) + name + content + crc


def deep_png(colour, channels):
    """A PNG of 16 bits a channel, which Pillow cannot write."""
    header = struct.pack(">IIBBBBB", 4, 4, 16, colour, 0, 0, 0)
    rows = zlib.compress((b"\0" + bytes(4 * channels * 2)) * 4)
    content = chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + content


def deep_tiff():
    """A TIFF of 16 bits for each of three channels."""
    entries = [(256, 3, 1, 4), (257, 3, 1, 4), (258, 3, 3, 142), (259, 3, 1, 1), (262, 3, 1, 2),
               (273, 4, 1, 150), (277, 3, 1, 3), (278, 3, 1, 4), (279, 4, 1, 96)]  # fmt: skip
    directory = b"".join(struct.pack("<HHII", *entry) for entry in entries)
    head = b"II*\0" + struct.pack("<IH", 8, len(entries)) + directory + bytes(4)
    return head.ljust(142, b"\0") + struct.pack("<4H", 16, 16, 16, 0) + bytes(96)


@pytest.mark.parametrize(
    "image",
    [
        encoded("PNG", "I;16", PIXELS[:, :, 0]),
        deep_png(2, 3),
        deep_png(6, 4),
        deep_png(4, 2),
        deep_tiff(),
        b"P6 4 4 4095\n" + bytes(96),
    ],
    ids=["grey", "RGB", "RGBA", "grey and alpha", "TIFF", "PPM"],
)
def test_more_than_8_bits_a_channel_are_refused(image):
    with pytest.raises(FedstageError, match="must have 8 bits a channel"):
        Decoder().decode(image)


@pytest.mark.parametrize("image_format", ["JPEG", "PNG", "TIFF", "WEBP"])
@pytest.mark.parametrize(("orientation", "turned"), [(3, 2), (6, 3), (8, 1)])
def test_images_are_turned_as_their_exif_says(image_format, orientation, turned):
    exif = Image.Exif()
    exif[0x0112] = orientation
    smooth = np.sort(PIXELS, axis=1)
    plain = Decoder().decode(encoded(image_format, pixels=smooth))
    found = Decoder().decode(encoded(image_format, pixels=smooth, exif=exif))
    assert np.array_equal(found, np.rot90(plain, turned, (1, 2)))


def test_what_is_left_out_of_images_is_told(caplog):
    pages = [Image.new("RGB", (4, 4), (level, 0, 0)) for level in (1, 99, 200)]
    decoder = Decoder()
    for image_format in ("TIFF", "GIF", "WEBP"):
        buffer = BytesIO()
        pages[0].save(buffer, image_format, save_all=True, append_images=pages[1:])
        decoder.decode(buffer.getvalue(), f"a.{image_format}")
    decoder.decode(encoded("PNG", "RGBA", PIXELS[:4, :4]), "b.png")
    decoder.tell()
    assert caplog.messages == [
        "3 images: pages or frames after the first left out, such as of a.GIF",
        "1 image: transparency left out, such as of b.png",
    ]
