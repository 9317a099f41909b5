"""Public images with a transformation of their own, made once (Fed-ET, Cho et al. 2022)."""

import torch

from fedstage.randomness import torch_generator
from fedstage.settings.base import Augmentation
from fedstage.training.images import augment, draw

_AT_ONCE = 1000  # images, because the index of a crop takes eight bytes per pixel


def change_once(images: torch.Tensor, kind: Augmentation, split_seed: int) -> torch.Tensor:
    """Return images uint8 [m, C, H, W], each flipped or shifted as drawn with `split_seed`.

    They replace the originals, so that the teacher and every student of every round see the same
    images. The student's own augmentation (`server.augmentation`) is applied in addition.
    """
    drawn = draw(kind, len(images), torch_generator(split_seed, "dataset", "held_out_augmentation"))
    changed = torch.empty_like(images)
    for start in range(0, len(images), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        changed[part] = torch.as_tensor(augment(images[part], drawn[:, part]))
    return changed
