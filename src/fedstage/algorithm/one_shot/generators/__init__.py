"""Generators of labelled images, which replace public data.

A generator that clients train is a module with the two functions of `ClientGenerator`, found by the
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
        uint8 [n, C, H, W], like the images of a data set.
    labels : torch.Tensor
        int64 [n].
    """

    pixels: torch.Tensor
    labels: torch.Tensor


class ClientGenerator(Protocol):
    """The functions of a module whose generator clients train."""

    def train(
        self,
        settings: Any,
        images: torch.Tensor,
        labels: torch.Tensor,
        info: Mapping[str, Any],
        key: tuple[Key, ...],
        numerics: Numerics,
    ) -> tuple[Weights, float]:
        """Return the weights of a client's generator that the server needs, and its mean loss.

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

    Shares are rounded down, and the remaining images go, one each, to the clients that lost most by
    rounding; ties go to the first.
    """
    every = sum(samples)
    whole = [images * own // every for own in samples]
    lost = [images * own % every for own in samples]
    order = sorted(range(len(samples)), key=lambda client: -lost[client])
    for client in order[: images - sum(whole)]:
        whole[client] += 1
    return whole


def draw_labels(counts: torch.Tensor, images: int, generator: torch.Generator) -> torch.Tensor:
    """Draw labels int64 [images] from a client's distribution, given by its label counts [C]."""
    if not images:
        return torch.empty(0, dtype=torch.int64)
    return torch.multinomial(counts.double(), images, replacement=True, generator=generator)
