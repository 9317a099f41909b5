"""Selection of the clients whose models form a one-shot ensemble (Guha et al. 2019)."""

from typing import ClassVar, Literal

from fedstage.settings.base import ByName, Choice, Functions, Positive


class Selection(Choice):
    """A selection of clients, whose models form the ensemble; other clients send no model.

    A selection that is `judged` reads the clients' validation samples.
    """

    room: ClassVar[str] = "algorithm.one_shot"
    functions: ClassVar[Functions] = {"choose": ("settings", "candidates", "generator")}
    judged: ClassVar[bool] = False
    count: Positive
    """Number of selected clients."""


class RandomMembers(Selection):
    """Clients drawn at random; a larger count includes all clients of a smaller one."""

    module: ClassVar[str] = "selections"
    name: Literal["random"]


class BestMembers(Selection):
    """The clients whose models are the most accurate on their own validation samples."""

    judged: ClassVar[bool] = True
    module: ClassVar[str] = "selections"
    name: Literal["best"]


class LargestMembers(Selection):
    """The clients with the most training samples."""

    module: ClassVar[str] = "selections"
    name: Literal["largest"]


Members = ByName[RandomMembers | BestMembers | LargestMembers]
