"""Samples and labels as arrays, and the pixel statistics for normalising images."""

import math
from dataclasses import dataclass

import torch

_HIGHEST = 255  # of a pixel


@dataclass(frozen=True)
class Images:
    """Labelled samples: int64 labels [n] and, where known, int64 clients [n].

    Clients of test samples have the same numbers as in the training samples, or -1 if they do not
    occur there. Images are uint8 [n, C, H, W]. Other samples have the same name and are stored as
    models take them: standardised features, float32 [n, F]; tokens padded with 0, int32 [n, L];
    instances of bags, float32 [N, F], with `starts` int64 [n + 1] of `fedstage.data.bags.Bags`.
    """

    images: torch.Tensor
    labels: torch.Tensor
    clients: torch.Tensor | None = None
    starts: torch.Tensor | None = None

    @property
    def none(self) -> "Images":
        """No samples, of the same kind."""
        starts = None if self.starts is None else self.starts[:1]
        return Images(self.images[:0], self.labels[:0], starts=starts)


@dataclass(frozen=True)
class Dataset:
    """A data set in its parts."""

    train: Images  #: of the clients
    test: Images
    held_out: torch.Tensor  #: public images without labels, uint8 [m, C, H, W]
    server_validation: Images
    class_names: tuple[str, ...]  #: by class index
    #: The test samples as each client would prepare its own, where that differs from `test`.
    test_own: Images | None = None
    #: By the client's number in `train`, where the data name them.
    client_names: tuple[str, ...] | None = None
    #: What each column of features is, and columns that were left out because they are constant.
    feature_names: tuple[str, ...] | None = None
    constant: tuple[str, ...] | None = None


def pixel_statistics(images: torch.Tensor) -> tuple[list[float], list[float]]:
    """Return mean and population standard deviation of each channel, pixels scaled to 0..1.

    `images` are uint8 [n, C, H, W], n > 0. Sums are exact integers from a histogram, so the result
    is rounded correctly on every machine, without a float copy of the images. A channel without
    variation has deviation 1, so that dividing by it is safe.
    """
    moments = [_moments(images[:, channel]) for channel in range(images.shape[1])]
    return [mean for mean, _ in moments], [deviation or 1.0 for _, deviation in moments]


def _moments(channel: torch.Tensor) -> tuple[float, float]:
    counts: list[int] = torch.bincount(channel.flatten()).tolist()
    n = sum(counts)
    total = sum(level * count for level, count in enumerate(counts))
    squares = sum(level * level * count for level, count in enumerate(counts))
    variance = (n * squares - total * total) / (n * n)
    return total / (n * _HIGHEST), math.sqrt(variance) / _HIGHEST
