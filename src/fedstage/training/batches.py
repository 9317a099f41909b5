"""Mini-batches as index tensors, drawn before training from one generator."""

from collections.abc import Iterator
from itertools import islice

import torch

from fedstage.settings.optimisation import Client


def client_batches(
    samples: int, client: Client, generator: torch.Generator, skipped: int = 0
) -> list[torch.Tensor]:
    """Return the batches of a participant's training: `epochs` over its samples, or `steps`.

    Parameters
    ----------
    samples : int
        Number of training samples.
    generator : torch.Generator
        Draws a permutation for every epoch.
    skipped : int
        Of `steps`, how many batches other rounds have taken before.

    Returns
    -------
    list of torch.Tensor
        Sample indices, int64; one tensor a step.
    """
    epochs = _epochs(samples, client.batch_size, client.last_batch, generator)
    if client.steps is not None:
        every = (batch for epoch in epochs for batch in epoch)
        return list(islice(every, skipped, skipped + client.steps))
    return [batch for epoch in islice(epochs, client.epochs) for batch in epoch]


def all_batches(samples: int, size: int) -> list[torch.Tensor]:
    """Return every sample once, in order; a last batch of one joins the batch before it."""
    return _treat_last(list(torch.arange(samples).split(size)), size, "merge_single")


def public_batches(
    samples: int, batch_size: int, steps: int, generator: torch.Generator
) -> list[torch.Tensor]:
    """Return `steps` batches of public data, each epoch a permutation, only full batches.

    With fewer samples than a batch, every batch is all of them.
    """
    epochs = _epochs(samples, min(batch_size, samples), "drop", generator)
    return list(islice((batch for epoch in epochs for batch in epoch), steps))


def _epochs(
    samples: int, size: int, last_batch: str, generator: torch.Generator
) -> Iterator[list[torch.Tensor]]:
    while True:
        batches = list(torch.randperm(samples, generator=generator).split(size))
        yield _treat_last(batches, size, last_batch)


def _treat_last(batches: list[torch.Tensor], size: int, rule: str) -> list[torch.Tensor]:
    """Apply the last-batch rule; the only batch of an epoch is always kept.

    Batch statistics of one sample say nothing, so a last batch of one can be dropped or merged.
    """
    last = len(batches[-1])
    if len(batches) == 1 or last == size or rule == "keep":
        return batches
    if rule == "drop" or (rule == "drop_single" and last == 1):
        return batches[:-1]
    if rule == "merge_single" and last == 1:
        return [*batches[:-2], torch.cat(batches[-2:])]
    return batches
