"""The head of models."""

from fedstage.settings.base import Positive, Settings


class Head(Settings):
    """Layers that end a model of any architecture, the same in all: x -> z -> logits."""

    hidden: Positive = 128
    """Numbers that the architecture gives in place of classes, before a ReLU."""
    width: Positive = 128
    """Numbers of the representation z."""
    relu: bool = True
    """Another ReLU ends the representation."""
