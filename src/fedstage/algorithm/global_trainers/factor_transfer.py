"""Factor transfer (Kim, Park and Kwak 2018): a student learns factors of a teacher's feature maps.

Let x_T and x_S be the last feature maps of a teacher and of the student, for the images that the
student sees. Per sample, flattened,

    paraphraser    min mean | Dec(Enc(x_T)) - x_T |               trained first, without labels
    factors        F_T = Enc(x_T), frozen;  F_S = Translator(x_S), trained with the student
    L_FT = weight mean | F_T / ||F_T||_2 - F_S / ||F_S||_2 |      over all elements, as released

Enc has three 3x3 convolutions, from C to C, to k C and to k C channels, with LeakyReLU (0.1) after
each and no norms; Dec mirrors it with transposed convolutions, and the translator is like Enc. The
paper has one teacher. Several share one paraphraser, so that their factors are in one space, and
both losses are means over them. Each round has new teachers, and so a new paraphraser.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import sqrt
from typing import Any

import torch
from torch import nn
from torch.nn.functional import l1_loss, normalize

from fedstage.algorithm.global_trainers.objective import Seen, Term
from fedstage.algorithm.global_trainers.teachers import Teacher
from fedstage.data.bags import Samples
from fedstage.errors import FedstageError
from fedstage.models.heads import with_maps
from fedstage.randomness import Key, torch_generator
from fedstage.settings.numerics import Numerics
from fedstage.settings.server import FactorTransfer, Server
from fedstage.training.batches import public_batches, public_steps
from fedstage.training.images import normalise
from fedstage.training.loop import train
from fedstage.training.passes import compute

SLOPE = 0.1  # of LeakyReLU
RATE = 0.5  # k, as released


class Paraphraser(nn.Module):
    """Enc, and Dec, which inverts it."""

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        self.encoder = encoder(channels, width)
        self.decoder = _layers(nn.ConvTranspose2d, width, width, channels, channels)


class Translated(nn.Module):
    """A student in training, with the translator that learns with it."""

    def __init__(self, student: nn.Module, translator: nn.Module) -> None:
        super().__init__()
        self.student, self.translator = student, translator

    def forward(self, pixels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the student's logits [n, classes] and factors [n, k C, H, W]."""
        maps, logits = with_maps(self.student, pixels)
        return logits, self.translator(maps)


def encoder(channels: int, width: int) -> nn.Module:
    """Return three convolutions from feature maps of `channels` to factors of `width` channels."""
    return _layers(nn.Conv2d, channels, channels, width, width)


def _layers(kind: type[nn.Conv2d] | type[nn.ConvTranspose2d], *channels: int) -> nn.Module:
    """Return 3x3 convolutions between these numbers of channels, a LeakyReLU after each."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(channels):
        layers += [kind(inputs, outputs, 3, padding=1), nn.LeakyReLU(SLOPE)]
    return nn.Sequential(*layers)


def factor_distance(student: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
    """Return the mean absolute difference of factors [n, k C, H, W], of length 1 per sample."""
    return l1_loss(normalize(student.flatten(1)), normalize(teacher.flatten(1)))


def factors(
    model: nn.Module,
    teachers: Sequence[Teacher],
    images: Samples,
    server: Server,
    info: Mapping[str, Any],
    key: tuple[Key, ...],
    name: str,
    numerics: Numerics,
) -> tuple[Translated, Term]:
    """Train the paraphraser; return the student with its translator, and their term.

    Parameters
    ----------
    key : tuple
        Key of the random generators.
    name : str
        The student's name in messages.

    Raises
    ------
    FedstageError
        If feature maps differ in shape, or the paraphraser diverges.
    """
    settings = server.factor_transfer
    assert settings is not None, "the student has factors"
    assert isinstance(images, torch.Tensor), "only images have feature maps"
    shape = _shape(model, teachers, normalise(images[:1], info), numerics, name)
    widths = shape[0], max(1, int(RATE * shape[0]))
    device = next(model.parameters()).device
    paraphraser, translator = Paraphraser(*widths), encoder(*widths)
    for part, purpose in ((paraphraser, "paraphraser"), (translator, "translator")):
        draw_weights(part, torch_generator(*key, purpose, "weights"))
        part.to(device)
    train_paraphraser(paraphraser, teachers, images, server, info, key, name, numerics)
    return Translated(model, translator), factor_term(paraphraser, teachers, settings, numerics)


def factor_term(
    paraphraser: Paraphraser,
    teachers: Sequence[Teacher],
    settings: FactorTransfer,
    numerics: Numerics,
) -> Term:
    """Return the term, in which the paraphraser and the teachers have no gradient."""
    encode = paraphraser.encoder.eval().requires_grad_(False)

    def term(seen: Seen) -> torch.Tensor:
        assert seen.factors is not None, "the student has a translator"
        with torch.no_grad():
            maps = [maps_of(teacher, seen.pixels, numerics) for teacher in teachers]
            taught = [compute(encode, of_teacher, numerics).float() for of_teacher in maps]
        distances = [factor_distance(seen.factors, of_teacher) for of_teacher in taught]
        return settings.weight * torch.stack(distances).mean()

    return term


def maps_of(teacher: Teacher, pixels: torch.Tensor, numerics: Numerics) -> torch.Tensor:
    """Return a teacher's last feature maps [n, C, H, W]."""
    maps: torch.Tensor = compute(lambda seen: with_maps(teacher.model, seen)[0], pixels, numerics)
    return maps


def train_paraphraser(
    paraphraser: Paraphraser,
    teachers: Sequence[Teacher],
    images: Samples,
    server: Server,
    info: Mapping[str, Any],
    key: tuple[Key, ...],
    name: str,
    numerics: Numerics,
) -> None:
    """Train the paraphraser on public images, augmented like the student's, at a constant rate."""
    chosen = server.factor_transfer
    assert chosen is not None, "the student has factors"
    changed = {"epochs": chosen.epochs, "steps": None, "learning_rate": chosen.learning_rate}
    constant = type(server).model_fields["schedule"].default
    settings = server.model_copy(update=changed | {"schedule": constant})

    def reconstruction(model: nn.Module, pixels: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            seen = [maps_of(teacher, pixels, numerics) for teacher in teachers]
        losses = [reconstruction_loss(paraphraser, maps, numerics) for maps in seen]
        return torch.stack(losses).mean()

    size, steps = settings.batch_size, public_steps(len(images), settings)
    outcome = train(
        paraphraser,
        images,
        torch.zeros(len(images), device=images.device),
        public_batches(len(images), size, steps, torch_generator(*key, "paraphraser", "batches")),
        settings,
        l1_loss,
        info,
        torch_generator(*key, "paraphraser", "augmentation"),
        numerics,
        objective=reconstruction,
    )
    if outcome.diverged_at is not None:
        raise FedstageError(
            f"{name}: the paraphraser's loss is not finite at step {outcome.diverged_at}; lower "
            f"server.factor_transfer.learning_rate = {chosen.learning_rate}"
        )


def reconstruction_loss(
    paraphraser: Paraphraser, maps: torch.Tensor, numerics: Numerics
) -> torch.Tensor:
    """Return mean | Dec(Enc(x)) - x | of feature maps [n, C, H, W]."""

    def both(maps: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = paraphraser.decoder(paraphraser.encoder(maps))
        return made

    return l1_loss(compute(both, maps, numerics).float(), maps.float())


@torch.no_grad()
def draw_weights(model: nn.Module, generator: torch.Generator) -> None:
    """Draw weights of (transposed) convolutions from N(0, 2 / fan_in), and set biases to 0."""
    for layer in model.modules():
        if isinstance(layer, nn.Conv2d | nn.ConvTranspose2d):
            fan_in = layer.in_channels * layer.kernel_size[0] * layer.kernel_size[1]
            layer.weight.normal_(0.0, sqrt(2 / fan_in), generator=generator)
            assert layer.bias is not None, "it has one"
            layer.bias.zero_()


@torch.no_grad()
def _shape(
    model: nn.Module,
    teachers: Sequence[Teacher],
    pixels: torch.Tensor,
    numerics: Numerics,
    name: str,
) -> tuple[int, ...]:
    """Return the shape [C, H, W] of the last feature maps, which all models must share."""
    student = tuple(with_maps(model.eval(), pixels)[0].shape[1:])
    for teacher in teachers:
        shape = tuple(maps_of(teacher, pixels, numerics).shape[1:])
        if shape != student:
            raise FedstageError(
                f"{name}: server.factor_transfer: feature maps of shape {list(shape)} of a "
                f"teacher of group {teacher.group}: must have the student's, {list(student)}"
            )
    return student
