"""Sources of outliers: samples that belong to no class, made from a batch of a client's samples.

A source is a module with the function `make`, found by the name of its settings, which takes what
`outliers` takes.
"""

import torch

from fedstage.settings.base import implementation
from fedstage.settings.one_shot_clients import OutlierSource


def outliers(
    settings: OutlierSource, samples: torch.Tensor, generator: torch.Generator
) -> torch.Tensor:
    """Return as many outliers as there are samples [b, ...], of their shape, on their device.

    Samples are normalised model inputs; the generator is on the CPU.
    """
    made: torch.Tensor = implementation(settings).make(settings, samples, generator)
    return made
