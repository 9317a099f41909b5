"""Samples that are bags of different numbers of instances, such as the tiles of a slide.

The instances of all bags are in one tensor, one bag after the other, without padding. A batch is
padded to its longest bag when it goes into the model.
"""

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Bags:
    """Bags that can be indexed, split and moved like a tensor of samples.

    `instances` are features, float32 [N, F]; bag i has the rows from `starts[i]` up to, but not
    including, `starts[i + 1]`; `starts` is int64 [n + 1].
    """

    instances: torch.Tensor
    starts: torch.Tensor

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def device(self) -> torch.device:
        """The device of the instances."""
        return self.instances.device

    @property
    def shape(self) -> tuple[int, int]:
        """Number of bags, and features of an instance."""
        return len(self), self.instances.shape[1]

    @property
    def sizes(self) -> torch.Tensor:
        """Number of instances of each bag, int64 [n]."""
        return self.starts.diff()

    def __getitem__(self, index: torch.Tensor) -> "Bags":
        """Return the bags of an index, int64 [m], in its order."""
        sizes = self.sizes[index]
        starts = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
        shift = self.starts[:-1][index] - starts[:-1]
        rows = torch.arange(int(starts[-1]), device=starts.device)
        return Bags(self.instances[rows + shift.repeat_interleave(sizes)], starts)

    def split(self, size: int) -> list["Bags"]:
        """Return all bags in order, at most `size` at a time."""
        return [self[part] for part in torch.arange(len(self), device=self.device).split(size)]

    def to(self, device: torch.device) -> "Bags":
        """Return the bags on a device."""
        return Bags(self.instances.to(device), self.starts.to(device))

    def padded(self) -> torch.Tensor:
        """Return the bags as float32 [n, L, 1 + F], where the largest has L instances.

        The first column is 1 for instances and 0 for padding.
        """
        places = torch.arange(int(self.sizes.max()), device=self.device)
        real = places < self.sizes[:, None]
        padded = self.instances.new_zeros(*real.shape, 1 + self.instances.shape[1])
        padded[real] = torch.nn.functional.pad(self.instances, (1, 0), value=1.0)
        return padded


#: Samples in training and inference: images, features or tokens in a tensor, or bags.
Samples = torch.Tensor | Bags
