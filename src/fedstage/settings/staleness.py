"""Staleness: how many rounds old the model is that a participant starts from."""

from collections.abc import Iterator
from math import isclose
from typing import Annotated, Literal

from pydantic import Field

from fedstage.settings.base import ByName, Count, Probability, Settings


class Synchronised(Settings):
    """Every participant starts from the models of the previous round."""

    name: Literal["none"]


class Stale(Settings):
    """Participants may start from older models."""


class Cyclic(Stale):
    """All participants of a round have the same delay; the given delays take turns.

    Round t has delay number (t - 1) modulo the number of delays. Delays of 0 and 1 in turn are the
    alternating stragglers of buffered distillation.
    """

    name: Literal["cyclic"]
    delays: Annotated[tuple[Count, ...], Field(strict=False, min_length=1)]
    """Delays, in rounds, in the order in which rounds have them."""


class Never(Stale):
    """No participant is ever synchronised: each starts from the models of round 0."""

    name: Literal["never"]


class Random(Stale):
    """Each participant draws its delay in each round."""

    name: Literal["random"]
    probabilities: Annotated[tuple[Probability, ...], Field(strict=False, min_length=1)]
    """Probabilities of delays of 0, 1, 2, ... rounds."""

    def _faults(self) -> Iterator[str]:
        if not isclose(sum(self.probabilities), 1.0, abs_tol=1e-9):
            yield f"probabilities: sum to {sum(self.probabilities):g}: must sum to 1"


Staleness = ByName[Synchronised | Cyclic | Never | Random]


class Delays(Settings):
    """The staleness of a plan of participants, and whether stale participants are absent."""

    staleness: Staleness = Synchronised(name="none")
    withdraw_stale: bool = False


def shortest(staleness: Staleness) -> Staleness:
    """Return a staleness in its unique shortest form: ``none`` if no participant is ever late.

    Repeated delays are reduced to one cycle, and delays that are never drawn are left out.
    """
    if isinstance(staleness, Cyclic):
        delays = staleness.delays
        length = next(
            n
            for n in range(1, len(delays) + 1)
            if len(delays) % n == 0 and delays == delays[:n] * (len(delays) // n)
        )
        staleness = staleness.model_copy(update={"delays": delays[:length]})
        return staleness if any(staleness.delays) else Synchronised(name="none")
    if isinstance(staleness, Random):
        number = max(d for d, share in enumerate(staleness.probabilities, start=1) if share)
        staleness = staleness.model_copy(update={"probabilities": staleness.probabilities[:number]})
        return staleness if number > 1 else Synchronised(name="none")
    return staleness
