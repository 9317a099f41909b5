"""Images as a grid: a row a client or other group, a column a class."""

from pathlib import Path

import torch
from PIL import Image

from fedstage.storage.files import replacing

_SIDE = 32  # pixels of an image in the grid at least
_GAP = 2
_GREY = 200


def save_grid(
    path: Path, images: torch.Tensor, rows: torch.Tensor, labels: torch.Tensor, classes: int
) -> None:
    """Write PNG with the first of the images of each row and class.

    Parameters
    ----------
    images : torch.Tensor
        uint8 [n, C, H, W].
    rows, labels : torch.Tensor
        int64 [n]; rows that occur are sorted. Where no image is, the grid is grey.
    """
    names = rows.unique().tolist()
    scale = max(1, -(-_SIDE // images.shape[2]))
    large = images.repeat_interleave(scale, 2).repeat_interleave(scale, 3)
    height, width = (side + _GAP for side in large.shape[2:])
    canvas = torch.full((3, len(names) * height, classes * width), _GREY, dtype=torch.uint8)
    for place, row in enumerate(names):
        for label in range(classes):
            found = ((rows == row) & (labels == label)).nonzero()
            if len(found):
                top, left = place * height, label * width
                cell = large[int(found[0])]
                canvas[:, top : top + height - _GAP, left : left + width - _GAP] = cell
    picture = Image.fromarray(canvas.permute(1, 2, 0).contiguous().numpy())
    with replacing(path) as temporary, temporary.open("wb") as file:
        picture.save(file, format="PNG")
