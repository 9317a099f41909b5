"""Secure aggregation: the server learns the sum of a group's updates, and no single one."""

from collections.abc import Iterator, Sequence
from typing import Annotated

from pydantic import Field

from fedstage.settings.base import Positive, Probability, Rate, Settings

#: Vectors are integers modulo this.
MODULUS = 2**32


class Dropouts(Settings):
    """Shares of a round's participants that are gone, at random, before a step."""

    share: Probability = 0.0
    """They have advertised their keys, and send no shares of their secrets."""
    masked_input: Probability = 0.0
    """They have sent shares, and no masked vector: the server has to remove their masks."""
    unmask: Probability = 0.0
    """They have sent a masked vector, which counts, and reveal no shares of others."""

    def _faults(self) -> Iterator[str]:
        total = self.share + self.masked_input + self.unmask
        if total > 1:
            yield f"share + masked_input + unmask = {total:g}: at most 1"


class SecureAggregation(Settings):
    """The protocol of Bonawitz et al. (2017) with one server that is honest but curious."""

    threshold: Annotated[int, Field(ge=2)]
    """How many participants of a group must answer each step; so many shares give a secret."""
    clip: Rate
    """Each number of a change is clipped to at most so much, up and down."""
    payload_clip: Rate | None = None
    """Each number of what clients send in addition to weights is clipped to at most so much, such
    as the changes of SCAFFOLD's control variates; null: to `clip`.
    """
    bits: Annotated[int, Field(ge=1, le=31)] = 24
    """A clipped number becomes one of 2^bits integers."""
    most_samples: Positive
    """The most training samples that any client has."""
    dropped: Dropouts = Dropouts()
    """Participants that drop out in the middle of a round."""

    @property
    def width(self) -> float:
        """The distance h between the numbers of a change that neighbouring integers stand for."""
        return 2 * self.clip / ((1 << self.bits) - 1)


def faults_of_secure(
    secure: SecureAggregation, sizes: Sequence[int], setting: str = "aggregation.secure"
) -> Iterator[str]:
    """Yield what does not fit groups of so many participants.

    More than half must answer, so that a server cannot ask one half for the seed of a client and
    the other half for its mask key. Sums must stay below 2^32, so that they do not wrap.
    """
    most, fewest = max(sizes), min(sizes)
    if not most < 2 * secure.threshold <= 2 * fewest:
        yield (
            f"{setting}.threshold = {secure.threshold}: must be more than half of a "
            f"group's participants, and at most all: {most // 2 + 1} to {fewest}"
        )
    if most * (2**secure.bits - 1) >= MODULUS:
        yield (
            f"{setting}.bits = {secure.bits}: at most {(MODULUS // most).bit_length() - 1}"
            f" for {most} participants of a group, whose sum must be less than 2^32"
        )
    if most * secure.most_samples >= MODULUS:
        yield (
            f"{setting}.most_samples = {secure.most_samples}: at most "
            f"{(MODULUS - 1) // most} for {most} participants of a group, whose sum must be less "
            "than 2^32"
        )
