"""How much noise each client adds to the integers of secure aggregation.

Let h be the distance between the numbers that neighbouring integers represent, C the `clip` of
privacy, z its `noise` and n the number of participants of a group. Each participant adds Skellam
noise of variance (z C / h)^2 / n to each integer, so that the sum has noise of standard deviation z
C if all answer. If s of them answer, the standard deviation is z C sqrt(s / n).
"""

from collections.abc import Iterator, Sequence
from math import ceil

from fedstage.settings.privacy import ClientPrivacy
from fedstage.settings.secure import MODULUS, SecureAggregation

#: Number of standard deviations of noise for which a sum has room; the probability of more is
#: below 2^-128.
_ROOM = 16


def variance(how: ClientPrivacy, secure: SecureAggregation, participants: int) -> float:
    """Return the variance of the noise that each of the participants adds to an integer."""
    return 0.0 if how.clip is None else (how.noise * how.clip / secure.width) ** 2 / participants


def longest(how: ClientPrivacy, secure: SecureAggregation, numbers: int) -> float:
    """Return the largest L2 distance by which a client moves a sum of so many integers.

    Random rounding moves each number by less than 1 (Kairouz, Liu, Steinke 2021).
    """
    assert how.clip is not None, "without it there is no bound"
    return how.clip / secure.width + float(numbers**0.5)


def margin(how: ClientPrivacy, secure: SecureAggregation, participants: int) -> int:
    """Return how far noise may move a sum of integers below 0, or above its largest value."""
    deviation = (participants * variance(how, secure, participants)) ** 0.5
    return ceil(_ROOM * (deviation + _ROOM)) if deviation else 0


def faults_of_noise(
    how: ClientPrivacy, secure: SecureAggregation | None, sizes: Sequence[int]
) -> Iterator[str]:
    """Yield why groups of these sizes cannot add noise to their integers."""
    if secure is None:
        yield (
            "privacy.client.noise_by = clients: needs aggregation.secure, by which the server gets "
            "a sum that has noise of all"
        )
        return
    most = max(sizes)
    room = most * (2**secure.bits - 1) + 2 * margin(how, secure, most)
    if room >= MODULUS:
        yield (
            f"aggregation.secure.bits = {secure.bits}: must be less with privacy.client.noise_by = "
            f"clients: {most} participants and their noise need {room}, and there is room for 2^32"
        )
