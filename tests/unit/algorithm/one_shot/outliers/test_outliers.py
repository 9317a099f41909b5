"""Outliers are made from a batch, and are not what they are made from."""

import pytest
import torch
from pydantic import TypeAdapter

from fedstage.algorithm.one_shot.outliers import corruptions, outliers
from fedstage.randomness import torch_generator
from fedstage.settings.one_shot_clients import Outliers

SHAPES = [(1, 8, 8), (3, 32, 32), (3, 4, 9), (1, 5, 4)]


def images(shape=(3, 8, 8), count=6):
    return torch.randn(count, *shape, generator=torch_generator(0, "images"))


def made(name, samples, seed=0):
    source = TypeAdapter(Outliers).validate_python(name)
    return outliers(source, samples, torch_generator(seed, "outliers"))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", ["corruptions", "noise"])
def test_there_is_an_outlier_a_sample_and_samples_stay(name, shape):
    samples = images(shape, count=40)
    before = samples.clone()
    found = made(name, samples)
    assert found.shape == samples.shape
    assert found.dtype == samples.dtype
    assert bool(found.isfinite().all())
    assert torch.equal(samples, before)
    changed = (found != samples).flatten(1).any(1)
    assert int(changed.sum()) >= 36  # a turn may leave as few pixels as 4x5 has where they are


def ramp(size=32):
    return torch.arange(size * size, dtype=torch.float32).reshape(1, size, size)


def test_a_crop_shows_less_than_half_of_an_image():
    spans = []
    for seed in range(50):
        found = corruptions.crop(ramp(), torch_generator(seed, "crop"))
        columns, rows = found[0, 0, -1] - found[0, 0, 0], (found[0, -1, 0] - found[0, 0, 0]) / 32
        spans.append(float((columns + 1) * (rows + 1)) / 32**2)
    assert 0.08 < min(spans) < 0.13
    assert 0.27 < max(spans) < 0.36


def test_between_a_third_and_a_half_is_erased():
    shares = [
        float((corruptions.erase(ramp() + 1, torch_generator(seed, "erase")) == 0).float().mean())
        for seed in range(50)
    ]
    assert max(shares) < 0.55
    assert sum(share > 0.3 for share in shares) > 40  # others would be longer than the image


def test_a_blur_is_a_mean_along_one_axis_more_than_along_the_other():
    seen = set()
    for seed in range(40):
        point = torch.zeros(1, 17, 17)
        point[0, 8, 8] = 1.0
        found = corruptions.blur(point, torch_generator(seed, "blur"))
        assert float(found.sum()) == pytest.approx(1.0, abs=1e-5)
        seen.add((int((found.sum(2) > 0).sum()), int((found.sum(1) > 0).sum())))
    assert {max(pair) for pair in seen} >= {5, 7, 9}
    assert {pair[0] > pair[1] for pair in seen} == {True, False}


def test_a_cut_puts_a_half_in_the_place_of_another_or_exchanges_halves():
    exchanged = copied = 0
    for seed in range(60):
        found = corruptions.cut(ramp(), torch_generator(seed, "cut"))
        kept = len(found.unique())
        exchanged += kept == 32 * 32
        copied += kept < 32 * 32
        assert kept >= 32 * 32 / 2
        assert (
            any(torch.equal(found[0, i], ramp()[0, i]) for i in range(32))
            or kept == 32**2
            or (any(torch.equal(found[0, :, i], ramp()[0, :, i]) for i in range(32)))
        )
    assert exchanged >= 10
    assert copied >= 25
