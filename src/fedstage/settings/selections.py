"""Which clients' models a one-shot ensemble has (Guha et al. 2019)."""

from typing import ClassVar, Literal

from fedstage.settings.base import ByName, Choice, Fraction, Functions, Positive
from fedstage.settings.traits import Needs, Trait


class Selection(Choice):
    """A choice of clients, whose models are the ensemble's; the others send none.

    A selection that is `judged` reads the clients' validation samples.
    """

    room: ClassVar[str] = "algorithm.one_shot.selections"
    functions: ClassVar[Functions] = {"choose": ("settings", "candidates", "generator")}
    needs: ClassVar[Needs] = {"name": (Trait.CHOSEN,)}
    judged: ClassVar[bool] = False
    count: Positive
    """How many clients."""


class RandomMembers(Selection):
    """Clients drawn at random; a larger count has all clients of a smaller one."""

    name: Literal["random"]


class BestMembers(Selection):
    """The clients whose models are the most accurate on their own validation samples."""

    judged: ClassVar[bool] = True
    name: Literal["best"]
    by: Literal["validation"] = "validation"
    """The samples that decide."""
    at_least: Fraction = 0.0
    """The least accuracy, from 0 to 1, of a chosen client."""


class LargestMembers(Selection):
    """The clients with most training samples."""

    name: Literal["largest"]
    samples: Positive = 1
    """The fewest training samples of a chosen client."""


Members = ByName[RandomMembers | BestMembers | LargestMembers]
