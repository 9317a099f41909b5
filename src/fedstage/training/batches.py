"""Mini-batches as tensors of sample indices (int64), drawn before training from one generator."""

from collections.abc import Iterator
from itertools import chain, islice

import torch

from fedstage.settings.optimisation import Client
from fedstage.settings.privacy import private_steps, sampling_rate
from fedstage.settings.server import Server


def client_batches(
    samples: int, client: Client, generator: torch.Generator, skipped: int = 0
) -> list[torch.Tensor]:
    """Return a participant's batches, one per step: `epochs` over its samples, or `steps`.

    The generator draws one permutation per epoch; `skipped` batches of earlier rounds come before.
    """
    epochs = _epochs(samples, client.batch_size, client.last_batch, generator)
    if client.steps is not None:
        return list(islice(chain.from_iterable(epochs), skipped, skipped + client.steps))
    return list(chain.from_iterable(islice(epochs, client.epochs)))


def poisson_batches(samples: int, client: Client, generator: torch.Generator) -> list[torch.Tensor]:
    """Return a participant's batches, each with every sample independently at random.

    They have `client.batch_size` samples on average, and may be empty.
    """
    rate = sampling_rate(client, samples)
    drawn = torch.rand(
        private_steps(client, samples), samples, dtype=torch.float64, generator=generator
    )
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
