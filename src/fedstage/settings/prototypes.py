"""One prototype per class, learnt by clients with features that are similar in a class (FAFI)."""

from typing import ClassVar, Literal

from fedstage.settings.base import NonNegative, Rate, Settings


class Prototypes(Settings):
    """How clients learn one prototype per class in place of the last layer (FAFI).

    A model sees two views of each batch.
    """

    more_outputs: ClassVar[Literal["features"]] = "features"
    near: NonNegative = 1.0
    """Weight of the cross entropy of a feature's similarities to the prototypes, added to the cross
    entropy of the logits.
    """
    apart: NonNegative = 1.0
    """Weight of the cross entropy of each prototype's similarities to all prototypes."""
    alike: NonNegative = 1.0
    """Weight of the contrastive loss of features of the same class against others."""
    temperature: Rate = 0.07
    """Temperature of the contrastive loss."""
