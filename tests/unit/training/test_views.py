"""Random views of images."""

import pytest
import torch

from fedstage.randomness import torch_generator
from fedstage.training.views import view


def pixels(channels=3, count=4, side=16):
    return torch.rand(count, channels, side, side, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("channels", [1, 3])
def test_views_are_images_of_the_same_size_with_pixels_in_range(channels):
    generator = torch_generator(0, "views")
    for _ in range(40):
        seen = view(pixels(channels), generator)
        assert seen.shape == (4, channels, 16, 16)
        assert 0 <= float(seen.min()) <= float(seen.max()) <= 1 + 1e-6


def test_all_images_of_a_batch_are_seen_alike():
    generator = torch_generator(3, "views")
    same = pixels(count=1).expand(5, -1, -1, -1)
    for _ in range(10):
        seen = view(same, generator)
        torch.testing.assert_close(seen, seen[:1].expand(5, -1, -1, -1))
