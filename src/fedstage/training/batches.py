"""Mini-batches as tensors of sample indices (int64), drawn before training from one generator."""

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain, islice
from typing import TypeVar

import torch

from fedstage.protocol.privacy import private_steps, sampling_rate
from fedstage.settings.optimisation import Client
from fedstage.settings.privacy import Noise
from fedstage.settings.server import Server

#: Maps drawn samples, int64 [rows, b], to the model's input and its targets.
Batch = Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]]
#: Sets the gradients of all parameters for drawn samples, and returns the loss.
Backward = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class NoisyBatches:
    """DP-SGD: per-sample gradients clipped to `clip`, and noise of `noise` times this length.

    `expected` is the mean number of samples of a batch.
    """

    clip: float | None
    noise: float
    expected: float
    generator: torch.Generator  #: draws the noise


def noisy_batches(
    how: Noise, batch_size: int, samples: int, generator: torch.Generator
) -> NoisyBatches:
    """Return the noise of batches that `poisson_batches` draws."""
    expected = sampling_rate(batch_size, samples) * samples
    return NoisyBatches(how.clip, how.noise, expected, generator)


def client_batches(
    samples: int,
    client: Client,
    generator: torch.Generator,
    skipped: int = 0,
    *,
    private: bool = False,
) -> list[torch.Tensor]:
    """Return a participant's batches, one per step: `epochs` over its samples, or `steps`.

    The generator draws one permutation per epoch; `skipped` batches of earlier rounds come before.
    With privacy of samples, as many batches have every sample independently at random.
    """
    if private:
        steps = private_steps(client, samples)
        return poisson_batches(samples, client.batch_size, steps, generator)
    epochs = _epochs(samples, client.batch_size, client.last_batch, generator)
    if client.steps is not None:
        return list(islice(chain.from_iterable(epochs), skipped, skipped + client.steps))
    return list(chain.from_iterable(islice(epochs, client.epochs)))


def poisson_batches(
    samples: int, batch_size: int, steps: int, generator: torch.Generator
) -> list[torch.Tensor]:
    """Return `steps` batches, each with every sample independently at random.

    They have `batch_size` samples on average, and may be empty.
    """
    rate = sampling_rate(batch_size, samples)
    drawn = torch.rand(steps, samples, dtype=torch.float64, generator=generator)
    return [row.nonzero().flatten() for row in drawn < rate]


def all_batches(samples: int, size: int) -> list[torch.Tensor]:
    """Return batches of all samples in order; a last batch of one joins the batch before it."""
    return _treat_last(list(torch.arange(samples).split(size)), size, "merge_single")


def public_batches(
    samples: int, batch_size: int, steps: int, generator: torch.Generator
) -> list[torch.Tensor]:
    """Return `steps` full batches of public data, one permutation per epoch.

    If there are fewer samples than a batch holds, every batch consists of all samples.
    """
    epochs = _epochs(samples, min(batch_size, samples), "drop", generator)
    return list(islice(chain.from_iterable(epochs), steps))


def public_steps(samples: int, server: Server) -> int:
    """Return the steps of a training on public data."""
    if server.steps is not None:
        return server.steps
    assert server.epochs is not None, "checked by Server"
    return server.epochs * epoch_steps(samples, server.batch_size)


def epoch_steps(samples: int, batch_size: int) -> int:
    """Return the number of full batches of one permutation of public data."""
    return samples // min(batch_size, samples)


def _epochs(
    samples: int, size: int, last_batch: str, generator: torch.Generator
) -> Iterator[list[torch.Tensor]]:
    while True:
        batches = list(torch.randperm(samples, generator=generator).split(size))
        yield _treat_last(batches, size, last_batch)


def _treat_last(batches: list[torch.Tensor], size: int, rule: str) -> list[torch.Tensor]:
    """Apply the last-batch rule; the only batch of an epoch is always kept.

    A last batch of one can be dropped or merged, because one sample has no useful statistics.
    """
    last = len(batches[-1])
    if len(batches) == 1 or last == size or rule == "keep":
        return batches
    if rule == "drop" or (rule == "drop_single" and last == 1):
        return batches[:-1]
    if rule == "merge_single" and last == 1:
        return [*batches[:-2], torch.cat(batches[-2:])]
    return batches


# --- several models that train at a time ----------------------------------------------------------
#
# Trainings that take turns on one GPU, each on its own stream.
#
# A training is a generator that yields after each step. The host launches a step of one, then of
# the next, and the GPU runs different streams side by side. A generator makes its tensors on its
# stream and hands over only results that it has waited for, so trainings do not depend on each
# other.

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
