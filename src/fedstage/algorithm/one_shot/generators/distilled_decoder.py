"""One decoder in place of all clients' decoders (FedCVAE-KD; Heinbaugh et al., ICLR 2023).

    L = rec( sigmoid(p_i(z, y)), p(z, y) )      z, y and i drawn as for the clients' images

rec is the same as for the clients' autoencoders (`cvae`). The labels of the decoder's images are
equally frequent.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from fedstage.algorithm.one_shot.generators import draw_labels, shares
from fedstage.algorithm.one_shot.generators.cvae import (
    decode,
    draw_noise,
    reconstruction,
    size_of,
)
from fedstage.errors import FedstageError
from fedstage.models.autoencoder import Decoder, new_decoder
from fedstage.models.image_generator import draw_parameters
from fedstage.models.loading import state_of
from fedstage.randomness import Key, torch_generator
from fedstage.settings.generators import Cvae, DistilledDecoder
from fedstage.settings.optimisation import Client
from fedstage.training.batches import client_batches
from fedstage.training.optimisers import adam_descent
from fedstage.weights import Weights


def distil(
    settings: Cvae,
    how: DistilledDecoder,
    decoders: Mapping[int, Weights],
    counts: Sequence[Tensor],
    info: Mapping[str, Any],
    key: tuple[Key, ...],
    device: torch.device,
) -> Weights:
    """Return a decoder trained on the outputs of the clients' `decoders`.

    Each client's `counts` [classes] give its number of images and the frequencies of their labels.

    Raises
    ------
    FedstageError
        If training diverges.
    """
    numbers = shares([int(own.sum()) for own in counts], how.samples)
    pixels, latent, labels = [], [], []
    for (client, weights), own, number in zip(decoders.items(), counts, numbers, strict=True):
        generator = torch_generator(*key, "client", client)
        labels.append(draw_labels(own, number, generator))
        latent.append(draw_noise(settings, number, generator))
        pixels.append(decode(settings, weights, latent[-1], labels[-1], info, device))
    decoder = new_decoder(*size_of(info), settings.latent, settings.width)
    draw_parameters(decoder, torch_generator(*key, "weights"))
    taught = Taught(*(torch.cat(parts).to(device) for parts in (pixels, latent, labels)))
    _learn(decoder.to(device).train(), how, taught, torch_generator(*key, "batches"))
    return state_of(decoder)


class Taught(NamedTuple):
    """What decoders generate: pixels in [0, 1], [n, C, H, W], of z [n, latent] and labels [n]."""

    pixels: Tensor
    latent: Tensor
    labels: Tensor


def _learn(
    decoder: Decoder, how: DistilledDecoder, taught: Taught, generator: torch.Generator
) -> None:
    """Train the decoder in place."""
    adam = Client(
        optimiser="adam",
        epochs=how.epochs,
        batch_size=how.batch_size,
        learning_rate=how.learning_rate,
    )
    parameters = list(decoder.parameters())
    batches = client_batches(len(taught.labels), adam, generator)
    descend = adam_descent(parameters, how.learning_rate, len(batches))
    loss = taught.pixels.new_zeros(())
    for step, batch in enumerate(batches):
        pixels, latent, labels = (part[batch.to(part.device)] for part in taught)
        loss = reconstruction(decoder(latent, labels), pixels)
        descend(loss, step)
    if not loss.isfinite():
        raise FedstageError(
            "generator.distilled: the loss is not finite; lower "
            f"generator.distilled.learning_rate = {how.learning_rate}"
        )


def even_labels(counts: Sequence[Tensor], images: int, generator: torch.Generator) -> Tensor:
    """Draw labels int64 [images], with equal frequencies of the classes that any client has."""
    held = torch.stack(list(counts)).sum(0) > 0
    return draw_labels(held, images, generator)
