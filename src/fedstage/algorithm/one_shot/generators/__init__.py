"""Generators of labelled images, which take the place of public data.

A generator that clients train is a module of the two functions of `ClientGenerator`, found by the
name of its settings. All draws come from the generators of `fedstage.randomness`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast

import torch

from fedstage.randomness import Key
from fedstage.settings.base import implementation
from fedstage.settings.generators import ImageGenerator
from fedstage.settings.numerics import Numerics
from fedstage.weights import Weights


@dataclass(frozen=True)
class Images:
    """Generated images.

    Attributes
    ----------
    pixels : torch.Tensor
        uint8 [n, C, H, W], as images of a data set are.
    labels : torch.Tensor
        int64 [n].
    """

    pixels: torch.Tensor
    labels: torch.Tensor


class ClientGenerator(Protocol):
    """The functions of a module of generators that clients train."""

    def train(
        self,
        settings: Any,
        images: torch.Tensor,
        labels: torch.Tensor,
        info: Mapping[str, Any],
        key: tuple[Key, ...],
        numerics: Numerics,
    ) -> tuple[Weights, float]:
        """Return what the server needs of a generator of a client's images, and its mean loss.

        `images` are uint8 [n, C, H, W]. Raises FedstageError if training diverges.
        """

    def sample(
        self,
        settings: Any,
        weights: Weights,
        labels: torch.Tensor,
        info: Mapping[str, Any],
        generator: torch.Generator,
        device: torch.device,
    ) -> torch.Tensor:
        """Return images, uint8 [n, C, H, W], of labels [n]."""


def of_server(settings: ImageGenerator, info: Mapping[str, Any]) -> Any:
    """Return the `world.Method` of a generator that the server trains."""
    return implementation(settings).method(settings, info)


def of_clients(settings: ImageGenerator) -> ClientGenerator:
    """Return the module of a generator that clients train."""
    return cast(ClientGenerator, implementation(settings))


def shares(samples: list[int], images: int) -> list[int]:
    """Divide a number of images over clients in proportion to their samples.

    Shares are rounded down, and the rest goes, one each, to the clients that lose most; of equals
    to the first.
    """
    every = sum(samples)
    whole = [images * own // every for own in samples]
    lost = [images * own % every for own in samples]
    order = sorted(range(len(samples)), key=lambda client: -lost[client])
    for client in order[: images - sum(whole)]:
        whole[client] += 1
    return whole


def draw_labels(counts: torch.Tensor, images: int, generator: torch.Generator) -> torch.Tensor:
    """Draw labels int64 [images] from a client's distribution, its label counts [C]."""
    if not images:
        return torch.empty(0, dtype=torch.int64)
    return torch.multinomial(counts.double(), images, replacement=True, generator=generator)
