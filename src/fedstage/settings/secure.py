"""Secure aggregation: the server learns the sum of a group's updates, but no single update."""

from collections.abc import Iterator, Sequence
from typing import Annotated

from pydantic import Field

from fedstage.settings.base import Positive, Probability, Rate, Settings

#: Vectors consist of integers modulo this number.
MODULUS = 2**32


class Dropouts(Settings):
    """Shares of a round's participants that drop out, at random, before a step."""

    share: Probability = 0.0
    """Share that drops out before sending shares of secrets; these participants have advertised
    their keys.
    """
    masked_input: Probability = 0.0
    """Share that drops out after sending shares, without a masked vector; the server has to remove
    their masks.
    """
    unmask: Probability = 0.0
    """Share that drops out after sending a masked vector, which counts; these participants reveal
    no shares of others.
    """

    def _faults(self) -> Iterator[str]:
        total = self.share + self.masked_input + self.unmask
        if total > 1:
            yield f"share + masked_input + unmask = {total:g}: at most 1"


class SecureAggregation(Settings):
    """The protocol of Bonawitz et al. (2017) with one honest-but-curious server."""

    threshold: Annotated[int, Field(ge=2)]
    """Number of participants of a group that must answer each step, and number of shares that
    reveal a secret.
    """
    clip: Rate
    """Maximum absolute value to which each number of a change is clipped."""
    payload_clip: Rate | None = None
    """Maximum absolute value to which further numbers from clients are clipped, such as the changes
    of SCAFFOLD's control variates; null: `clip`.
    """
    bits: Annotated[int, Field(ge=1, le=31)] = 24
    """Number of bits: a clipped number becomes one of 2^bits integers."""
    most_samples: Positive
    """Maximum number of training samples of any client."""
    dropped: Dropouts = Dropouts()
    """Participants that drop out in the middle of a round; by default none."""


def faults_of_secure(
    secure: SecureAggregation, sizes: Sequence[int], setting: str = "aggregation.secure"
) -> Iterator[str]:
    """Yield settings that do not fit groups of these sizes.

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
