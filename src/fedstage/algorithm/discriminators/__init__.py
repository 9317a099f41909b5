"""Discriminators of clients, and the server's generator (FedGO, Jang et al., ICML 2025).

    discriminator   max   E_x log D(x) + E_z log(1 - D(G(z)))
    generator       max   E_z log D(G(z))

A client's discriminator is trained against the generator. Both expectations have equal weight,
however many images x there are. The server trains a generator and its own discriminator in turn on
its public images (Goodfellow et al. 2014, in the form that does not saturate; Adam's rates are from
Radford et al. 2016). Each client trains a discriminator against the finished generator, which uses
its running statistics; all start from the same weights.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from fedstage.errors import FedstageError
from fedstage.models.image_generator import (
    ImageGenerator,
    new_discriminator,
    new_image_generator,
    standardised,
)
from fedstage.randomness import Key, torch_generator
from fedstage.settings.ensembles import Discriminator, PublicGenerator
from fedstage.settings.numerics import Numerics
from fedstage.settings.optimisation import Client
from fedstage.training.batches import client_batches, public_batches
from fedstage.training.images import normalise
from fedstage.training.optimisers import Descend, adam_descent
from fedstage.training.passes import forward

Info = Mapping[str, Any]


def real_or_made(real: Tensor, made: Tensor) -> Tensor:
    """Return a discriminator's loss, from its log odds [b] of real and [b] of generated images."""
    return softplus(-real).mean() + softplus(made).mean()


def taken_for_real(made: Tensor) -> Tensor:
    """Return the loss of a generator whose images have the log odds `made` [b]."""
    return softplus(-made).mean()


def train_generator(
    settings: PublicGenerator,
    images: Tensor,
    info: Info,
    key: tuple[Key, ...],
    numerics: Numerics,
) -> tuple[ImageGenerator, float]:
    """Return a generator trained on `images`, uint8 [n, C, H, W], and its mean loss.

    Raises
    ------
    FedstageError
        If a loss is not finite.
    """
    shape, device = tuple(info["shape"]), images.device
    random = torch_generator(*key, "weights")
    net = new_image_generator(shape, settings.latent, settings.width, random).to(device).train()
    judge = new_discriminator(shape, settings.width, random).to(device)
    improve, learn = (_adam(settings, model, settings.steps) for model in (net, judge))
    noise = torch_generator(*key, "latent")
    batches = public_batches(
        len(images), settings.batch_size, settings.steps, torch_generator(*key, "batches")
    )
    losses = []
    for step, batch in enumerate(batches):
        made = standardised(net(draw(settings, len(batch), noise, device)), info)
        real = normalise(images[batch.to(device)], info)
        judged = (forward(judge, seen, numerics) for seen in (real, made.detach()))
        loss = real_or_made(*judged)
        learn(loss, step)
        fooled = taken_for_real(forward(judge, made, numerics))
        improve(fooled, step)
        losses += [loss.detach(), fooled.detach()]
    _check_finite(losses, "generator", settings.learning_rate)
    return net, float(torch.stack(losses[1::2]).mean())


def train_discriminator(
    settings: Discriminator,
    of_generator: PublicGenerator,
    net: ImageGenerator,
    images: Tensor,
    info: Info,
    key: tuple[Key, ...],
    client: int,
    numerics: Numerics,
) -> tuple[nn.Module, float]:
    """Return a discriminator trained on a client's images, uint8 [n, C, H, W], and its mean loss.

    `key` is the key of the initial weights, which all clients share.

    Raises
    ------
    FedstageError
        If a loss is not finite.
    """
    device = images.device
    judge = new_discriminator(
        tuple(info["shape"]), settings.width, torch_generator(*key, "weights")
    ).to(device)
    own = Client(
        epochs=settings.epochs,
        batch_size=settings.batch_size,
        learning_rate=settings.learning_rate,
        last_batch="keep",
    )
    batches = client_batches(len(images), own, torch_generator(*key, client, "batches"))
    learn = _adam(settings, judge, len(batches))
    noise = torch_generator(*key, client, "latent")
    net.eval()
    losses = []
    for step, batch in enumerate(batches):
        with torch.no_grad():
            made = standardised(net(draw(of_generator, len(batch), noise, device)), info)
        real = normalise(images[batch.to(device)], info)
        loss = real_or_made(*(forward(judge, seen, numerics) for seen in (real, made)))
        learn(loss, step)
        losses.append(loss.detach())
    _check_finite(losses, "discriminator", settings.learning_rate)
    return judge, float(torch.stack(losses).mean())


def draw(
    settings: PublicGenerator, count: int, random: torch.Generator, device: torch.device
) -> Tensor:
    """Return standard normal inputs z [count, latent] of a generator."""
    return torch.randn(count, settings.latent, generator=random).to(device)


def _adam(settings: PublicGenerator | Discriminator, model: nn.Module, steps: int) -> Descend:
    parameters = list(model.parameters())
    return adam_descent(parameters, settings.learning_rate, steps, beta1=settings.beta1)


def _check_finite(losses: Sequence[Tensor], who: str, rate: float) -> None:
    if not bool(torch.stack(list(losses)).isfinite().all()):
        raise FedstageError(
            f"ensemble = odds: the loss of the {who} is not finite; lower "
            f"ensemble.{who}.learning_rate = {rate}"
        )
