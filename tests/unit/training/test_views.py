"""Random views of images."""

import pytest
import torch

from fedstage.randomness import torch_generator
from fedstage.training.views import crop_box, view


def pixels(channels=3, count=4, side=16):
    return torch.rand(count, channels, side, side, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("channels", [1, 3])
def test_views_are_images_of_the_same_size_with_pixels_in_range(channels):
    generator = torch_generator(0, "views")
    for _ in range(40):
        seen = view(pixels(channels), generator)
        assert seen.shape == (4, channels, 16, 16)
        assert 0 <= float(seen.min()) <= float(seen.max()) <= 1 + 1e-6


def test_a_view_is_drawn_from_its_generator_only():
    one, again, other = (view(pixels(), torch_generator(seed, "views")) for seed in (0, 0, 1))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)


def test_all_images_of_a_batch_are_seen_alike():
    generator = torch_generator(3, "views")
    same = pixels(count=1).expand(5, -1, -1, -1)
    for _ in range(10):
        seen = view(same, generator)
        torch.testing.assert_close(seen, seen[:1].expand(5, -1, -1, -1))


@pytest.mark.parametrize("size", [(32, 32), (8, 20)])
def test_parts_have_the_share_and_the_aspect_that_is_said(size):
    generator = torch_generator(0, "views")
    for _ in range(300):
        top, left, height, width = crop_box(size, generator)
        assert 0 <= top <= size[0] - height
        assert 0 <= left <= size[1] - width
        if (height, width) == size:
            continue  # of the aspects that were tried none fits
        share, aspect = height * width / (size[0] * size[1]), width / height
        assert 0.15 <= share <= 1
        assert 0.6 <= aspect <= 1.6  # pixels are whole


def test_grey_mirrored_and_other_colours_all_occur():
    generator = torch_generator(1, "views")
    seen = [view(pixels(), generator) for _ in range(60)]
    grey = [torch.allclose(one[:, 0], one[:, 1]) for one in seen]
    assert 0 < sum(grey) < 30
