from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from fedstage.data.datasets.decoding import UNDECODABLE, decode, decode_small, is_small

PIXELS = np.random.default_rng(3).integers(0, 256, (9, 14, 3), dtype=np.uint8)
LOSSLESS = {"PNG": {}, "WEBP": {"lossless": True}}


def encoded(image_format, mode="RGB", pixels=PIXELS, **options):
    buffer = BytesIO()
    Image.fromarray(pixels).convert(mode).save(buffer, image_format, **options)
    return buffer.getvalue()


@pytest.fixture(params=LOSSLESS)
def lossless(request):
    return encoded(request.param, **LOSSLESS[request.param])


@pytest.mark.parametrize("side", [1, 2, 31, 128])
@pytest.mark.parametrize("image_format", LOSSLESS)
def test_images_of_any_small_size_are_those_that_pillow_decodes(image_format, side):
    pixels = np.random.default_rng(side).integers(0, 256, (side, 128, 3), dtype=np.uint8)
    smooth = np.sort(pixels, axis=1)  # other filters and transforms than those of noise
    for content in (pixels, smooth):
        image = encoded(image_format, pixels=content, **LOSSLESS[image_format])
        small = decode_small(image)
        assert small is not None
        assert np.array_equal(small, content.transpose(2, 0, 1))


@pytest.mark.parametrize(
    "image",
    [
        encoded("JPEG"),
        encoded("WEBP", quality=90),
        encoded("WEBP", "RGBA", np.dstack([PIXELS, PIXELS[:, :, 0]]), lossless=True),
        encoded("PNG", "L"),
        encoded("PNG", "P"),
        encoded("PNG", "RGBA"),
        encoded("PNG", "I;16", PIXELS[:, :, 0]),
        encoded("PNG", pixels=np.zeros((4, 129, 3), np.uint8)),
        encoded("WEBP", pixels=np.zeros((129, 4, 3), np.uint8), lossless=True),
        b"",
    ],
    ids=["JPEG", "lossy", "transparent", "grey", "palette", "RGBA", "16 bits", "wide", "high", "0"],
)
def test_other_images_are_left_to_pillow(image):
    assert decode_small(image) is None
    assert not is_small(image)


def test_an_image_that_is_cut_off_is_refused_or_whole(lossless):
    for length in range(len(lossless)):
        try:
            assert np.array_equal(decode(lossless[:length]), PIXELS.transpose(2, 0, 1)), length
        except UNDECODABLE:
            continue
