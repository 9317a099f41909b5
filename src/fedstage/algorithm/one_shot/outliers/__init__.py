"""Sources of outliers: samples that belong to no class, made from a batch of a client's own.

A source is a module with the function `make`, found by the name of its settings.
"""

from typing import Any, Protocol, cast

import torch

from fedstage.settings.base import implementation
from fedstage.settings.unknown import OutlierSource


class OutlierModule(Protocol):
    """The function of a source's module."""

    def make(
        self, settings: Any, samples: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        """Return as many outliers as there are samples [b, ...], of their shape, on their device.

        Samples are as models take them; the generator is on the CPU.
        """


def outliers(
    settings: OutlierSource, samples: torch.Tensor, generator: torch.Generator
) -> torch.Tensor:
    """Return the outliers that a source makes from samples [b, ...]."""
    return cast(OutlierModule, implementation(settings)).make(settings, samples, generator)
