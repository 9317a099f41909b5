"""Held-out images with a transformation of their own."""

import pytest
import torch

from fedstage.randomness import torch_generator
from fedstage.training.images import augment, draw
from fedstage.training.public_images import change_once


def pixels(n, side=6):
    shape = (n, 3, side, side)
    generator = torch_generator(0, "pixels")
    return torch.randint(1, 256, shape, generator=generator, dtype=torch.uint8)


def by_hand(image, down, right, side=6):
    """Return one image [3, H, W] shifted in a black frame of 4 pixels."""
    framed = torch.zeros(3, side + 8, side + 8, dtype=torch.uint8)
    framed[:, 4:-4, 4:-4] = image
    return framed[:, down : down + side, right : right + side]


@pytest.mark.parametrize("kind", ["flip", "crop", "crop_flip"])
def test_each_image_has_a_draw_of_its_own(kind):
    images = pixels(40)
    drawn = draw(kind, 40, torch_generator(5, "dataset", "held_out_augmentation")).tolist()

    changed = change_once(images, kind, 5)

    for i, image in enumerate(images):
        flipped = image.flip(-1) if kind != "crop" and drawn[0][i] else image
        expected = flipped if kind == "flip" else by_hand(flipped, drawn[-2][i], drawn[-1][i])
        assert torch.equal(changed[i], expected)
    assert changed.dtype == torch.uint8
    assert not torch.equal(changed, images)


def test_many_images_are_changed_as_one_batch_would_be(monkeypatch):
    monkeypatch.setattr("fedstage.training.public_images._AT_ONCE", 7)
    images = pixels(20)
    drawn = draw("crop_flip", 20, torch_generator(0, "dataset", "held_out_augmentation"))

    assert torch.equal(change_once(images, "crop_flip", 0), augment(images, drawn))
