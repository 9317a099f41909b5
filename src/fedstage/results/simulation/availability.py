"""When clients are available: endless intervals of random length."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from math import inf

from fedstage.randomness import numpy_generator
from fedstage.settings.simulation import Availability

#: Begin and end of an interval in which a client is available, in seconds.
Window = tuple[float, float]


def windows(settings: Availability | None, seed: int, client: int) -> Iterator[Window]:
    """Yield the intervals in which a client is available, in chronological order.

    Both kinds of intervals are exponentially distributed. At time 0 a client is available with
    probability `share`, for as long as at any other time.
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
    """Return the seconds before `until` in which a client is available."""
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
    """A client's current or next interval, and the ones after it; earlier times are forgotten."""

    rest: Iterator[Window]
    window: Window

    def opens(self, time: float) -> float:
        """Return the first moment from `time` on at which the client is available."""
        while self.window[1] <= time:
            self.window = next(self.rest)
        return max(time, self.window[0])

    def finish(self, start: float, seconds: float) -> float:
        """Return the end of work from `start`, in the current interval; it pauses while away."""
        while (room := self.window[1] - start) < seconds:
            seconds -= room
            self.window = next(self.rest)
            start = self.window[0]
        return start + seconds
