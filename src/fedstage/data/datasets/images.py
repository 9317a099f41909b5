"""Samples and labels as arrays, and the pixel statistics that models normalise images with."""

import math
from dataclasses import dataclass

import torch

_LEVELS = 256  # of a pixel


@dataclass(frozen=True)
class Images:
    """Labelled samples: int64 labels [n] and, where known, int64 clients [n].

    Images are uint8 [n, C, H, W]. What is no image is stored under the same name as a model takes
    it: features float32 [n, F], standardised; tokens int32 [n, L], padded with 0; the instances of
    bags float32 [N, F], with `starts` int64 [n + 1], as `fedstage.data.bags.Bags` has them.
    """

    images: torch.Tensor
    labels: torch.Tensor
    clients: torch.Tensor | None = None
    starts: torch.Tensor | None = None

    @property
    def none(self) -> "Images":
        """The same kind of samples, but none of them."""
        starts = None if self.starts is None else self.starts[:1]
        return Images(self.images[:0], self.labels[:0], starts=starts)


@dataclass(frozen=True)
class Dataset:
    """A data set in its parts.

    Attributes
    ----------
    train, test : Images
        What clients have, and what is scored on.
    held_out : torch.Tensor
        Public images without labels, uint8 [m, C, H, W].
    server_validation : Images
        The server's own.
    class_names : tuple of str
        By class index.
    test_own : Images or None
        The test samples as each client would prepare its own of them, where that is not what
        `test` holds.
    """

    train: Images
    test: Images
    held_out: torch.Tensor
    server_validation: Images
    class_names: tuple[str, ...]
    test_own: Images | None = None


def pixel_statistics(images: torch.Tensor) -> tuple[list[float], list[float]]:
    """Compute mean and population standard deviation of each channel, pixels scaled to 0..1.

    Sums are exact integers taken from a histogram, so that the result is the correctly rounded one
    on every machine and no float copy of the images is made.

    Parameters
    ----------
    images : torch.Tensor
        uint8 [n, C, H, W], n > 0.

    Returns
    -------
    tuple
        Mean [C] and standard deviation [C]; a channel without variation has deviation 1, so that
        dividing by it is safe.
    """
    moments = [_moments(images[:, channel]) for channel in range(images.shape[1])]
    return [mean for mean, _ in moments], [deviation or 1.0 for _, deviation in moments]


def _moments(channel: torch.Tensor) -> tuple[float, float]:
    counts: list[int] = torch.bincount(channel.flatten(), minlength=_LEVELS).tolist()
    n = sum(counts)
    total = sum(level * count for level, count in enumerate(counts))
    squares = sum(level * level * count for level, count in enumerate(counts))
    variance = (n * squares - total * total) / (n * n)
    highest = _LEVELS - 1
    return total / (n * highest), math.sqrt(variance) / highest
