import pytest
import torch

from fedstage.randomness import torch_generator
from fedstage.training.images import augment, draw, normalise, view

PADDING = 4


def pixels(n, channels=2, height=6, width=5, seed=0):
    """Random images in which nothing is black, so that padding can be told from content."""
    generator = torch_generator(seed, "pixels")
    shape = (n, channels, height, width)
    return torch.randint(1, 256, shape, generator=generator, dtype=torch.uint8)


def augmented(images, kind, seed=0):
    drawn = draw(kind, len(images), torch_generator(seed, "augmentation"))
    return augment(images, drawn)


def test_normalise_by_hand():
    images = torch.tensor([0, 255, 51, 102], dtype=torch.uint8).view(1, 2, 1, 2)
    result = normalise(images, {"mean": [0.5, 0.2], "std": [0.25, 0.1]})
    assert result.dtype == torch.float32
    assert result.flatten().tolist() == pytest.approx([-2.0, 2.0, 0.0, 2.0], abs=1e-6)
    assert images.flatten().tolist() == [0, 255, 51, 102]


def test_flips_are_drawn_before_crops_and_batch_by_batch():
    """Results of earlier versions stand for this order."""
    generator, other = torch_generator(0, "augmentation"), torch_generator(0, "augmentation")
    for count in (5, 3):
        flips, *crops = draw("crop_flip", count, generator)
        assert torch.equal(flips, (torch.rand(count, generator=other) < 0.5).long())
        assert torch.equal(torch.stack(crops), torch.randint(0, 9, (2, count), generator=other))


def test_flip_mirrors_about_half_left_to_right():
    images = pixels(1000)
    result = augmented(images, "flip")
    flipped = [bool((a == b.flip(-1)).all()) for a, b in zip(result, images, strict=True)]
    kept = [bool((a == b).all()) for a, b in zip(result, images, strict=True)]
    assert all(a != b for a, b in zip(flipped, kept, strict=True))
    assert 430 < sum(flipped) < 570  # 500 +- 4.4 standard deviations


def slow_crop(image, row, column):
    """Cut a window of the image's own size out of the zero-padded image, pixel by pixel."""
    channels, height, width = image.shape
    result = torch.zeros_like(image)
    for channel in range(channels):
        for y in range(height):
            for x in range(width):
                source_y, source_x = y + row - PADDING, x + column - PADDING
                if 0 <= source_y < height and 0 <= source_x < width:
                    result[channel, y, x] = image[channel, source_y, source_x]
    return result


def crops_of(image, result):
    """Return all (flipped, row, column) that turn `image` into `result`."""
    return [
        (flipped, row, column)
        for flipped in (False, True)
        for row in range(2 * PADDING + 1)
        for column in range(2 * PADDING + 1)
        if torch.equal(slow_crop(image.flip(-1) if flipped else image, row, column), result)
    ]


def test_crop_flip_is_a_crop_of_the_padded_image_flipped_or_not():
    images = pixels(12)
    for image, result in zip(images, augmented(images, "crop_flip"), strict=True):
        assert len(crops_of(image, result)) == 1


def test_crop_offsets_cover_0_to_8_evenly_and_independently():
    size, n, middle = 16, 4000, 8
    numbers = torch.arange(1, size + 1, dtype=torch.uint8).expand(size, size)
    image = torch.stack([numbers.T, numbers])  # each pixel knows its row and its column, from 1
    result = augmented(image.expand(n, 2, size, size), "crop_flip").long()
    row = result[:, 0, middle, middle] - 1 - (middle - PADDING)
    column = result[:, 1, middle, middle] - 1
    flipped = result[:, 1, middle, middle + 1] < result[:, 1, middle, middle]
    column = torch.where(flipped, size - 1 - column, column) - (middle - PADDING)
    for offsets in (row, column):
        assert sorted(set(offsets.tolist())) == list(range(9))
        assert torch.bincount(offsets).min() > 0.75 * n / 9
    assert len(set(zip(row.tolist(), column.tolist(), flipped.tolist(), strict=True))) == 162


@pytest.mark.parametrize("kind", ["flip", "crop", "crop_flip"])
def test_the_generator_alone_decides_and_the_input_is_left_alone(kind):
    images = pixels(20)
    before = images.clone()
    torch.manual_seed(1)
    first = augmented(images, kind)
    assert (first.shape, first.dtype) == (images.shape, torch.uint8)
    assert torch.equal(images, before)
    assert not torch.equal(first, before)
    torch.manual_seed(2)
    assert torch.equal(augmented(images, kind), first)
    assert not torch.equal(augmented(images, kind, seed=1), first)


# --- random views of images -----------------------------------------------------------------------


def fractions(channels=3, count=4, side=16):
    return torch.rand(count, channels, side, side, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("channels", [1, 3])
def test_views_are_images_of_the_same_size_with_pixels_in_range(channels):
    generator = torch_generator(0, "views")
    for _ in range(40):
        seen = view(fractions(channels), generator)
        assert seen.shape == (4, channels, 16, 16)
        assert 0 <= float(seen.min()) <= float(seen.max()) <= 1 + 1e-6


def test_all_images_of_a_batch_are_seen_alike():
    generator = torch_generator(3, "views")
    same = fractions(count=1).expand(5, -1, -1, -1)
    for _ in range(10):
        seen = view(same, generator)
        torch.testing.assert_close(seen, seen[:1].expand(5, -1, -1, -1))
