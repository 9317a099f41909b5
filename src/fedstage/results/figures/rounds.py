"""Ticks of an axis of rounds."""

from collections.abc import Iterator
from itertools import count

_NEAR = 0.5  # of a step: a tick nearer than this to the first or last round is left out


def round_ticks(first: int, last: int, most: int = 6) -> list[int]:
    """Return rounds to label: the first, the last, and multiples of 1, 2, 5 or 10 in between.

    Parameters
    ----------
    first, last : int
        The first and the last round.
    most : int
        The maximum number of ticks, at least 2.

    Examples
    --------
    >>> round_ticks(1, 100)
    [1, 20, 40, 60, 80, 100]
    >>> round_ticks(1, 8)
    [1, 2, 4, 6, 8]
    """
    if first == last:
        return [first]
    return next(
        ticks for step in round_numbers() if len(ticks := _ticks(first, last, step)) <= most
    )


def _ticks(first: int, last: int, step: int) -> list[int]:
    between = range(first + 1, last)
    near = _NEAR * step
    inner = [at for at in between if at % step == 0 and min(at - first, last - at) >= near]
    return [first, *inner, last]


def round_numbers() -> Iterator[int]:
    """Yield 1, 2, 5, 10, 20, 50, 100 and so on."""
    for power in count():
        yield from (factor * 10**power for factor in (1, 2, 5))
