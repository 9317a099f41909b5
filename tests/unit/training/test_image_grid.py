"""The grid shows the first image of each row and column where it belongs, and names both."""

import numpy as np
import pytest
import torch
from PIL import Image

from fedstage.training.image_grid import named, save_grid, tiled

SIDE, STEP = 8, 8 + 6  # of an image, and with the gap beside it


def flat(*colours):
    """Images of one colour each, uint8 [n, 3, 8, 8]."""
    return torch.tensor(colours, dtype=torch.uint8)[:, :, None, None].expand(-1, 3, SIDE, SIDE)


def cell(picture, row, column):
    """The colour in the middle of an image."""
    return picture[row * STEP + SIDE // 2, column * STEP + SIDE // 2].tolist()


def test_each_cell_has_its_first_image():
    images = flat([9, 0, 0], [0, 9, 0], [0, 0, 9], [1, 2, 3])
    rows, columns = torch.tensor([7, 2, 7, 7]), torch.tensor([1, 0, 1, 2])
    picture = tiled(images, rows, columns, [2, 7], across=3)
    assert picture.shape == (2 * STEP, 3 * STEP, 3)
    assert cell(picture, 0, 0) == [0, 9, 0]
    assert cell(picture, 1, 1) == [9, 0, 0]  # not the second of the same row and column
    assert cell(picture, 1, 2) == [1, 2, 3]


def test_a_cell_without_an_image_is_grey():
    picture = tiled(flat([0, 0, 0]), torch.tensor([0]), torch.tensor([1]), [0], across=2)
    red, green, blue = cell(picture, 0, 0)
    assert red == green == blue > 200


def dark(picture, box):
    """Whether a box (left, upper, right, lower) has dark pixels: letters."""
    return np.asarray(picture.crop(box)).min() < 100


def test_names_stand_to_the_left_and_above():
    tiles = Image.new("RGB", (200, 100), (200, 200, 200))
    picture = named(tiles, ["client 3"], ["cat", "dog"])
    left, top = picture.width - tiles.width, picture.height - tiles.height
    assert dark(picture, (0, top, left, picture.height))
    assert dark(picture, (left, 0, left + 100, top))
    assert dark(picture, (left + 100, 0, left + 200, top))
    assert not dark(picture, (0, 0, left, top))
    assert not dark(picture, (left, top, picture.width, picture.height))  # none over an image


@pytest.mark.parametrize(("row", "wider"), [("client", True), ("", False)])
def test_rows_are_named_by_what_they_are(tmp_path, row, wider):
    labels = torch.tensor([0, 1])
    save_grid(tmp_path / "a.png", flat([1, 1, 1], [2, 2, 2]), labels, labels, ["cat", "dog"], row)
    with Image.open(tmp_path / "a.png") as picture:
        assert (picture.width > 2 * (96 + 6) + 6) is wider
        assert picture.height > 2 * (96 + 6)


@pytest.mark.parametrize(("width", "cell"), [(40, 3 * 40), (1280, 1280)])
def test_features_are_lines_that_are_enlarged_no_more_than_images(tmp_path, width, cell):
    labels = torch.tensor([0, 1])
    save_grid(tmp_path / "a.png", torch.rand(2, width), labels, labels, ["cat", "dog"])
    with Image.open(tmp_path / "a.png") as picture:
        assert picture.width == 2 * (cell + 6) + 6
        assert picture.height < 200
