"""Architectures: one module each, found by the name of its settings."""

from typing import Any, Protocol, cast

from torch import nn

from fedstage.settings.base import implementation
from fedstage.settings.models import Model


class ArchitectureModule(Protocol):
    """The function that the module of an architecture defines."""

    def network(self, settings: Any, shape: tuple[int, ...], classes: int) -> nn.Module:
        """Return a model on the CPU, with torch's initial parameters.

        It maps images or other samples [n, *shape] (float) to logits [n, classes].
        """


def architecture(settings: Model) -> ArchitectureModule:
    """Return the module of an architecture."""
    return cast(ArchitectureModule, implementation(settings))
