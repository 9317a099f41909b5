"""One batch of images that a server generates against an ensemble."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from fedstage.algorithm.one_shot.generators import Images
from fedstage.algorithm.one_shot.generators.world import Made, Method, World, combined
from fedstage.errors import FedstageError
from fedstage.models.image_generator import ImageGenerator, new_image_generator, standardised
from fedstage.randomness import Key, torch_generator
from fedstage.settings.generators import Adversarial
from fedstage.training.images import augment, draw
from fedstage.training.optimisers import adam_descent
from fedstage.training.passes import forward


def generate(
    settings: Adversarial, method: Method, world: World, weights: Tensor, key: tuple[Key, ...]
) -> Images:
    """Return the batch with the lowest loss of a generator, trained from new weights with its z.

    Raises
    ------
    FedstageError
        If the loss is not finite at any step.
    """
    device = weights.device
    net, latent, labels = _begin(settings, world.info, key, device)
    own = list(net.parameters())
    descend = adam_descent(
        [*own, latent],
        settings.learning_rate,
        settings.steps,
        beta1=settings.beta1,
        clip_norm=settings.clip_norm,
        clipped=own,
    )
    random = torch_generator(*key, "augmentation")
    world.student.eval()
    lowest, best = torch.inf, None
    for step in range(settings.steps):
        pixels = net(latent)
        seen = augment(pixels, draw(settings.augmentation, len(labels), random).to(device))
        assert isinstance(seen, Tensor), "augmented images are images"
        loss = method.loss(_seen(method, world, weights, seen, labels))
        if float(loss.detach()) < lowest:
            lowest, best = float(loss.detach()), pixels.detach()
        descend(loss, step)
    if best is None:
        raise FedstageError(
            f"generator = {settings.name}: the generator's loss is never finite; lower "
            f"generator.learning_rate = {settings.learning_rate}"
        )
    return Images(best.mul(255).round().to(torch.uint8), labels)


def _begin(
    settings: Adversarial, info: Mapping[str, Any], key: tuple[Key, ...], device: torch.device
) -> tuple[ImageGenerator, nn.Parameter, Tensor]:
    """Return a network with new weights, z [b, latent] and labels [b]."""
    shape, classes = tuple(info["shape"]), int(info["classes"])
    weights, drawn = torch_generator(*key, "generator"), torch_generator(*key, "latent")
    net = new_image_generator(shape, settings.latent, settings.width, weights)
    latent = torch.randn(settings.batch_size, settings.latent, generator=drawn)
    labels = torch.randint(0, classes, (settings.batch_size,), generator=drawn)
    return net.to(device).train(), nn.Parameter(latent.to(device)), labels.to(device)


def _seen(method: Method, world: World, weights: Tensor, pixels: Tensor, labels: Tensor) -> Made:
    inputs = standardised(pixels, world.info)
    with watched(world.teachers if method.watches else ()) as distances:
        teacher = combined(weights, world.logits(inputs))
    student = forward(world.student, inputs, world.numerics)
    statistics = [torch.stack(own).sum() for own in distances]
    return Made(
        teacher, student, labels, torch.stack(statistics) if statistics else teacher.new_empty(0)
    )


@contextmanager
def watched(models: Sequence[nn.Module]) -> Iterator[list[list[Tensor]]]:
    """Collect by model and layer || mean - running mean || + || variance - running variance ||."""
    found: list[list[Tensor]] = [[] for _ in models]
    handles = [
        norm.register_forward_pre_hook(_collecting(own))
        for own, model in zip(found, models, strict=True)
        for norm in model.modules()
        if isinstance(norm, nn.BatchNorm2d)
    ]
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()


def _collecting(found: list[Tensor]) -> Callable[[nn.BatchNorm2d, tuple[Tensor, ...]], None]:
    def hook(norm: nn.BatchNorm2d, inputs: tuple[Tensor, ...]) -> None:
        (maps,) = inputs
        mean, variance = maps.mean((0, 2, 3)), maps.var((0, 2, 3), correction=0)
        assert norm.running_mean is not None, "the norms of all models have running statistics"
        assert norm.running_var is not None, "the norms of all models have running statistics"
        found.append((mean - norm.running_mean).norm() + (variance - norm.running_var).norm())

    return hook
