"""Trainings that take turns on one GPU, each on its own stream.

A training is a generator that yields after each step. The host launches a step of one, then of the
next, and the GPU runs different streams side by side. A generator makes its tensors on its stream
and hands over only results that it has waited for, so trainings do not depend on each other.
"""

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache, partial
from typing import TypeVar

import torch

T = TypeVar("T")
#: Returns the context manager of a stream.
Enter = Callable[[], AbstractContextManager[object]]


def finish(work: Generator[None, None, T], device: torch.device) -> T:
    """Run one training to its end, and return its result."""
    with streams(device, 1) as (enter,), enter():
        while True:
            try:
                next(work)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]


def take_turns(works: Iterable[Iterator[None]], at_a_time: int, device: torch.device) -> None:
    """Run trainings to their ends, in order, with up to `at_a_time` of them side by side.

    When one ends, the next starts on its stream. A training's bytes do not depend on the others.
    """
    waiting = iter(works)
    with streams(device, at_a_time) as entries:
        running = list(zip(entries, waiting, strict=False))
        while running:
            running = [turn for each in running for turn in _turn(*each, waiting)]


def _turn(
    enter: Enter, work: Iterator[None], waiting: Iterator[Iterator[None]]
) -> list[tuple[Enter, Iterator[None]]]:
    """Take a step of a training; return the training of the stream's next step, if there is one."""
    with enter():
        if next(work, "ended") is None:
            return [(enter, work)]
    return [(enter, each) for each in (next(waiting, None),) if each is not None]


@contextmanager
def streams(device: torch.device, count: int) -> Iterator[list[Enter]]:
    """Yield `count` streams, which wait for the current stream's work; it then waits for them."""
    if device.type != "cuda":  # entering does nothing
        yield [nullcontext] * count
        return
    current = torch.cuda.current_stream(device)
    own = [_stream(device, number) for number in range(count)]
    for stream in own:
        stream.wait_stream(current)
    yield [partial(torch.cuda.stream, stream) for stream in own]
    for stream in own:
        current.wait_stream(stream)


@cache  # memory freed on a stream stays with it: with new streams a worker's memory would grow
def _stream(device: torch.device, number: int) -> torch.cuda.Stream:
    return torch.cuda.Stream(device)
