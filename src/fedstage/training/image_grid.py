"""Images as a grid: one row per client or epoch, one column per class.

The grid is drawn without the library and style of figures, because the stages that generate images
draw it: they would run again whenever the look of figures changed.
"""

from collections.abc import Sequence
from pathlib import Path

import torch
from PIL import Image, ImageDraw, ImageFont

from fedstage.storage.files import replacing

_SIDE = 96  # minimum pixels of an image, in a grid of few columns
_FEW = 20
_LINE = 16  # pixels of the height of features
_GAP = 6
_TEXT = 16  # pixels of a line
_GREY = 225


def save_grid(
    path: Path,
    images: torch.Tensor,
    rows: torch.Tensor,
    columns: torch.Tensor,
    names: Sequence[str],
    row: str = "",
) -> None:
    """Write a PNG with the first image of each row and column; cells without one are grey.

    Parameters
    ----------
    images : torch.Tensor
        uint8 [n, C, H, W]; features [n, d] are drawn as a line each, from the least to the largest.
    rows, columns : torch.Tensor
        int64 [n], the row and column of each image; rows that occur are drawn in their order.
    names : sequence of str
        The names of all columns; a name that is wider than an image is replaced by its number.
    row : str
        What a row stands for, such as "client"; without it rows have no names.
    """
    if images.dtype != torch.uint8:
        least, most = images.min(), images.max()
        lines = ((images - least) / (most - least) * 255).to(torch.uint8).flatten(1)
        images = lines[:, None, None].expand(-1, 1, _LINE, -1)
    numbers = rows.unique().tolist()
    scale = max(1, -(-_SIDE // max(images.shape[2:]))) if len(names) <= _FEW else 1
    tiles = Image.fromarray(tiled(images, rows, columns, numbers, len(names), scale).numpy())
    picture = named(tiles, [f"{row} {number}" if row else "" for number in numbers], names)
    with replacing(path) as temporary, temporary.open("wb") as file:
        picture.save(file, format="PNG")


def tiled(
    images: torch.Tensor,
    rows: torch.Tensor,
    columns: torch.Tensor,
    numbers: Sequence[int],
    across: int,
    scale: int = 1,
) -> torch.Tensor:
    """Return uint8 [height, width, 3]: each cell an image, and a gap below and next to it.

    Only images that are shown are enlarged: a few dozen among tens of thousands.
    """
    height, width = (scale * side for side in images.shape[2:])
    high, wide = height + _GAP, width + _GAP
    canvas = torch.full((3, len(numbers) * high, across * wide), _GREY, dtype=torch.uint8)
    for place, row in enumerate(numbers):
        for column in range(across):
            found = ((rows == row) & (columns == column)).nonzero()
            if len(found):
                top, left = place * high, column * wide
                large = images[int(found[0])].repeat_interleave(scale, 1)
                cell = large.repeat_interleave(scale, 2)
                canvas[:, top : top + height, left : left + width] = cell
    return canvas.permute(1, 2, 0).contiguous()


def named(tiles: Image.Image, rows: Sequence[str], columns: Sequence[str]) -> Image.Image:
    """Return tiles on white, with the names of rows to the left and of columns above."""
    font = ImageFont.load_default(_TEXT)
    wide, high = tiles.width / len(columns), tiles.height / len(rows)
    fitting = [
        name if font.getlength(name) <= wide else str(place) for place, name in enumerate(columns)
    ]
    left = _GAP + int(max(map(font.getlength, rows))) + (_GAP if any(rows) else 0)
    top = _GAP + (_TEXT + _GAP if any(columns) else 0)
    picture = Image.new("RGB", (left + tiles.width, top + tiles.height), "white")
    picture.paste(tiles, (left, top))
    draw = ImageDraw.Draw(picture)
    for place, name in enumerate(fitting):
        middle = left + (place + 0.5) * wide - _GAP / 2
        draw.text((middle, top - _GAP), name, "black", font, anchor="ms")
    for place, name in enumerate(rows):
        middle = top + (place + 0.5) * high - _GAP / 2
        draw.text((left - _GAP, middle), name, "black", font, anchor="rm")
    return picture
