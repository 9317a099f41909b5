"""The head of models."""

from fedstage.settings.base import Positive, Settings


class Head(Settings):
    """Layers that end a model of any architecture, the same in all: x -> z -> logits.

    The architecture gives `hidden` numbers in place of classes; ReLU, a linear layer and, with
    `relu`, another ReLU make the representation z of `width` numbers of them, and one more linear
    layer the logits.
    """

    hidden: Positive = 128
    width: Positive = 128
    relu: bool = True
