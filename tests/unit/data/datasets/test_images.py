import math

import numpy as np
import pytest
import torch

from fedstage.data.datasets.images import pixel_statistics


def test_statistics_are_those_of_float64_pixels_per_channel():
    pixels = np.random.default_rng(0).integers(0, 256, (50, 3, 5, 7), dtype=np.uint8)
    pixels[:, 1] //= 3
    scaled = pixels.astype(np.float64) / 255

    mean, deviation = pixel_statistics(torch.from_numpy(pixels))

    assert mean == pytest.approx(scaled.mean(axis=(0, 2, 3)), rel=1e-13)
    assert deviation == pytest.approx(scaled.std(axis=(0, 2, 3)), rel=1e-13)


def test_channel_without_variation_has_deviation_one():
    images = torch.full((4, 2, 3, 3), 51, dtype=torch.uint8)
    images[0, 1] = 0

    mean, deviation = pixel_statistics(images)

    assert mean[0] == 51 / 255
    assert deviation[0] == 1.0
    assert deviation[1] == pytest.approx(math.sqrt(3) / 4 * 51 / 255)
