"""Differential privacy: which noise hides whom, and how often a sample is drawn."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedstage.settings.optimisation import Client
    from fedstage.settings.privacy import ClientPrivacy, ExamplePrivacy, Noise


def client_privacy(recipe: Any) -> ClientPrivacy | None:
    """Return the noise that hides clients, if any does."""
    return None if recipe.privacy is None else recipe.privacy.client


def example_privacy(recipe: Any) -> ExamplePrivacy | None:
    """Return the noise that hides single samples, if any does."""
    return None if recipe.privacy is None else recipe.privacy.example


def delta_of(how: Noise, units: int) -> float:
    """Return the given delta, or N^-1.1 as in McMahan et al. 2018."""
    return units**-1.1 if how.delta is None else how.delta


def sampling_rate(batch_size: int, samples: int) -> float:
    """Return q, the probability with which each of so many samples is in a batch."""
    return min(1.0, batch_size / samples)


def private_steps(client: Client, samples: int) -> int:
    """Return the steps per round of a client with so many samples and with random batches."""
    if client.steps is not None:
        return client.steps
    assert client.epochs is not None, "checked by Client"
    return client.epochs * ceil(samples / client.batch_size)
