"""One prototype per class, which clients learn with features that are alike in a class (FAFI)."""

from typing import ClassVar, Literal

from fedstage.settings.base import NonNegative, Rate, Settings
from fedstage.settings.traits import UNRECORDED, Lacks, Needs, Trait


class Prototypes(Settings):
    """How clients learn one prototype per class in place of the last layer (FAFI).

    Of each batch a model sees two views.
    """

    needs: ClassVar[Needs] = {"name": (Trait.IMAGES, Trait.CROSS_ENTROPY, Trait.LEARNING)}
    lacks: ClassVar[Lacks] = {
        "name": (
            "which are learnt in place of outputs, in steps of their own",
            Trait.START_OUTPUTS,
            Trait.FREE_OUTPUTS,
            *UNRECORDED,
        )
    }
    more_outputs: ClassVar[Literal["features"]] = "features"
    near: NonNegative = 1.0
    """Weight of the cross entropy of a feature's similarity to the prototypes, next to that of the
    logits.
    """
    apart: NonNegative = 1.0
    """Weight of the cross entropy of a prototype's similarity to all prototypes."""
    alike: NonNegative = 1.0
    """Weight of the contrast of features of a class with others."""
    temperature: Rate = 0.07
    """Temperature of the contrast."""
