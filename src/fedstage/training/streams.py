"""Trainings that take turns on one GPU, each on a stream of its own.

A training is a generator that yields after each step. The host starts a step of one, then of the
next; the GPU does the work of different streams side by side. What a generator makes it makes on
its stream, and gives away only after it has waited for it: so none has to know of the others.
"""

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache, partial
from typing import TypeVar

import torch

T = TypeVar("T")
#: What enters a stream.
Enter = Callable[[], AbstractContextManager[object]]


def finish(work: Generator[None, None, T], device: torch.device) -> T:
    """Run one training to its end, and return what it returns."""
    with streams(device, 1) as (enter,), enter():
        while True:
            try:
                next(work)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]


def take_turns(works: Iterable[Iterator[None]], at_a_time: int, device: torch.device) -> None:
    """Run trainings to their ends, in their order and up to `at_a_time` of them side by side.

    The next one starts where one has ended. No training depends on the others, nor its bytes.
    """
    waiting = iter(works)
    with streams(device, at_a_time) as entries:
        running = list(zip(entries, waiting, strict=False))
        while running:
            running = [turn for each in running for turn in _turn(*each, waiting)]


def _turn(
    enter: Enter, work: Iterator[None], waiting: Iterator[Iterator[None]]
) -> list[tuple[Enter, Iterator[None]]]:
    """Take a step of a training; return who takes the next on its stream, if there is anyone."""
    with enter():
        goes_on = next(work, "ended") is None
    following = [work] if goes_on else [each for each in (next(waiting, None),) if each is not None]
    return [(enter, each) for each in following]


@contextmanager
def streams(device: torch.device, count: int) -> Iterator[list[Enter]]:
    """Yield what enters each of `count` streams; on a CPU there are none, and nothing to enter.

    They go on where the current stream is, and it goes on where all of them have ended.
    """
    if device.type != "cuda":
        yield [nullcontext] * count
        return
    current = torch.cuda.current_stream(device)
    own = [_stream(device, number) for number in range(count)]
    for stream in own:
        stream.wait_stream(current)
    yield [partial(torch.cuda.stream, stream) for stream in own]
    for stream in own:
        current.wait_stream(stream)


@cache  # memory that was freed on a stream is for that stream: with new ones, a worker's would grow
def _stream(device: torch.device, number: int) -> torch.cuda.Stream:
    return torch.cuda.Stream(device)
