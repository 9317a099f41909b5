"""A client's conditional variational autoencoder (Heinbaugh, Luz-Ricca and Shao, ICLR 2023).

    L = rec(x, x^) + beta KL( N(mu, s^2) || N(0, I) )

The encoder q(z | x) does not see the label, but the decoder p(x | z, y) does. rec is the binary
cross entropy of grey pixels, or the squared error of the sigmoids of coloured pixels, summed over
an image. KL is summed over latent dimensions; both are means over a batch. The decoder is sent to
the server. Images are generated from truncated z ~ N(0, I), with running statistics.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, mse_loss

from fedstage.errors import FedstageError
from fedstage.models.autoencoder import new_autoencoder, new_decoder
from fedstage.models.loading import state_of
from fedstage.randomness import Key, torch_generator
from fedstage.settings.generators import Cvae
from fedstage.settings.numerics import Numerics
from fedstage.settings.optimisation import Client
from fedstage.training.batches import client_batches
from fedstage.training.devices import on_device
from fedstage.training.loop import train as run
from fedstage.training.passes import ModelLoss, arrange, compute
from fedstage.weights import Weights

BATCH = 1000  # images decoded at a time


def train(
    settings: Cvae,
    images: torch.Tensor,
    labels: torch.Tensor,
    info: Mapping[str, Any],
    key: tuple[Key, ...],
    numerics: Numerics,
) -> tuple[Weights, float]:
    """Train an autoencoder on images uint8 [n, C, H, W]; return the decoder and the mean loss.

    Raises
    ------
    FedstageError
        If training diverges, or if there is a single image, which has no batch statistics.
    """
    if len(images) == 1:
        raise FedstageError("generator = cvae: 1 training sample: must be at least 2")
    drawn = torch_generator(*key, "weights")
    model = new_autoencoder(*size_of(info), settings.latent, settings.width, drawn)
    arrange(model.to(images.device), numerics)
    client = Client(
        optimiser="adam",
        epochs=settings.epochs,
        batch_size=settings.batch_size,
        learning_rate=settings.learning_rate,
    )
    outcome = run(
        model,
        images,
        labels,
        client_batches(len(images), client, torch_generator(*key, "batches")),
        client,
        mse_loss,  # which the objective replaces
        _unit(info),
        torch_generator(*key, "augmentation"),
        numerics,
        objective=objective(settings, torch_generator(*key, "noise"), numerics),
    )
    if outcome.diverged_at is not None:
        raise FedstageError(
            f"generator = cvae: the loss is not finite at step {outcome.diverged_at}; lower "
            f"generator.learning_rate = {settings.learning_rate}"
        )
    return state_of(model.decoder), outcome.loss


def objective(settings: Cvae, generator: torch.Generator, numerics: Numerics) -> ModelLoss:
    """Return an autoencoder's loss for pixels in [0, 1] and labels; each call draws noise."""

    def of_model(model: nn.Module, pixels: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        noise = torch.randn(len(pixels), settings.latent, generator=generator)
        placed = on_device(noise, pixels.device)
        made = compute(lambda seen: model(seen, labels, placed), pixels, numerics)
        logits, mean, log_variance = (part.float() for part in made)
        return reconstruction(logits, pixels) + settings.beta * divergence(mean, log_variance)

    return of_model


def reconstruction(logits: torch.Tensor, pixels: torch.Tensor) -> torch.Tensor:
    """Return rec of logits against pixels in [0, 1], both [n, C, H, W], a mean over images."""
    if pixels.shape[1] == 1:
        summed = binary_cross_entropy_with_logits(logits, pixels, reduction="sum")
    else:
        summed = mse_loss(logits.sigmoid(), pixels, reduction="sum")
    return summed / len(pixels)


def divergence(mean: torch.Tensor, log_variance: torch.Tensor) -> torch.Tensor:
    """Return KL( N(mean, exp(log_variance)) || N(0, I) ), both [n, latent], a mean over images."""
    each = (mean.square() + log_variance.exp() - 1 - log_variance).sum(1) / 2
    return each.mean()


def sample(
    settings: Cvae,
    weights: Weights,
    labels: torch.Tensor,
    info: Mapping[str, Any],
    generator: torch.Generator,
    device: torch.device,
) -> torch.Tensor:
    """Return images, uint8 [n, C, H, W] on the CPU, of labels [n] and drawn noise."""
    latent = draw_noise(settings, len(labels), generator)
    return decode(settings, weights, latent, labels, info, device).mul(255).round().to(torch.uint8)


def draw_noise(settings: Cvae, count: int, generator: torch.Generator) -> torch.Tensor:
    """Draw z [count, latent] from a standard normal distribution cut off at +-`truncation`."""
    cut = settings.truncation
    latent = torch.empty(count, settings.latent)
    return nn.init.trunc_normal_(latent, 0.0, 1.0, -cut, cut, generator=generator)


@torch.no_grad()
def decode(
    settings: Cvae,
    weights: Weights,
    latent: torch.Tensor,
    labels: torch.Tensor,
    info: Mapping[str, Any],
    device: torch.device,
) -> torch.Tensor:
    """Return pixels in [0, 1], [n, C, H, W] on the CPU, of z [n, latent] and labels [n]."""
    decoder = new_decoder(*size_of(info), settings.latent, settings.width)
    decoder.load_state_dict(weights)
    decoder.to(device).eval()
    parts = zip(latent.split(BATCH), labels.split(BATCH), strict=True)
    return torch.cat([decoder(z.to(device), y.to(device)).sigmoid().cpu() for z, y in parts])


def size_of(info: Mapping[str, Any]) -> tuple[tuple[int, ...], int]:
    """Return the shape of images, and the number of classes."""
    return tuple(info["shape"]), int(info["classes"])


def _unit(info: Mapping[str, Any]) -> dict[str, list[float]]:
    """Return the mean and deviation that leave normalised pixels in [0, 1]."""
    channels = info["shape"][0]
    return {"mean": [0.0] * channels, "std": [1.0] * channels}
