"""Staleness: how many rounds old the model is that a participant starts from."""

from collections.abc import Iterator
from math import isclose
from typing import Annotated, Literal

from pydantic import Field

from fedstage.settings.base import ByName, Count, Settings

Probability = Annotated[float, Field(ge=0, le=1)]


class Synchronised(Settings):
    """Every participant starts from the models of the round before."""

    name: Literal["none"]


class Cyclic(Settings):
    """All participants of round t have the delay `delays`[(t - 1) mod their number], in rounds.

    Delays of 0 and 1 in turn are the alternating stragglers of buffered distillation.
    """

    name: Literal["cyclic"]
    delays: Annotated[tuple[Count, ...], Field(strict=False, min_length=1)]


class Never(Settings):
    """Nobody is ever synchronised: every participant starts from the models of round 0."""

    name: Literal["never"]


class Random(Settings):
    """Each slot of each round draws its delay: d rounds with the d-th of `probabilities`."""

    name: Literal["random"]
    probabilities: Annotated[tuple[Probability, ...], Field(strict=False, min_length=1)]

    def _faults(self) -> Iterator[str]:
        if not isclose(sum(self.probabilities), 1.0, abs_tol=1e-9):
            yield f"probabilities: sum to {sum(self.probabilities):g}: must sum to 1"


Staleness = ByName[Synchronised | Cyclic | Never | Random]


class Delays(Settings):
    """The staleness of a plan of participants, and whether those that are stale stay away."""

    staleness: Staleness = Synchronised(name="none")
    withdraw_stale: bool = False
