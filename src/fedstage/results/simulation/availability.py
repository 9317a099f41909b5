"""When a client is there: intervals of random length, without end."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from math import inf

from fedstage.randomness import numpy_generator
from fedstage.settings.simulation import Availability

#: Begin and end of an interval in which a client is available, in seconds.
Window = tuple[float, float]


def windows(settings: Availability | None, seed: int, client: int) -> Iterator[Window]:
    """Yield the intervals in which a client is available, in the order of time.

    Both kinds of intervals are exponentially distributed. At time 0 a client is available with the
    probability `share`, and has as long to go as at any other time.
    """
    if settings is None:
        yield 0.0, inf
        return
    generator = numpy_generator(seed, "simulation", "availability", client)
    away = settings.interval * (1 - settings.share) / settings.share
    now = 0.0 if generator.random() < settings.share else generator.exponential(away)
    while True:
        end = now + generator.exponential(settings.interval)
        yield now, end
        now = end + generator.exponential(away)


def available_seconds(intervals: Iterator[Window], until: float) -> float:
    """Return how long a client is available before `until`."""
    begun = takewhile(lambda window: window[0] < until, intervals)
    return sum(min(end, until) - begin for begin, end in begun)


def away_before(intervals: Iterator[Window], until: float) -> Iterator[Window]:
    """Yield the intervals before `until` in which a client is not available."""
    last = 0.0
    for begin, end in intervals:
        if min(begin, until) > last:
            yield last, min(begin, until)
        if end >= until:
            return
        last = end


@dataclass
class Calendar:
    """A client's intervals from the present on.

    Attributes
    ----------
    rest : iterator
        The intervals to come.
    window : tuple of float
        The present interval, or the next one. Nobody may ask about times before it.
    """

    rest: Iterator[Window]
    window: Window

    def opens(self, time: float) -> float:
        """Return the first moment from `time` on at which the client is available."""
        while self.window[1] <= time:
            self.window = next(self.rest)
        return max(time, self.window[0])

    def finish(self, start: float, seconds: float) -> float:
        """Return when work ends that is begun at `start`, in the present interval.

        It pauses while the client is away.
        """
        while (room := self.window[1] - start) < seconds:
            seconds -= room
            self.window = next(self.rest)
            start = self.window[0]
        return start + seconds
