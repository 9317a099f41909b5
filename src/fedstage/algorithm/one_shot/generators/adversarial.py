"""Images that a server generates against an ensemble, and a student that learns from them.

With the teacher z(x) = sum_i w_i f_i(x) of the clients' models, each epoch

1. generates a batch: a generator with new weights and its z, for random labels y, takes `steps`
   steps of Adam on the method's loss L_G; the batch with the lowest loss on the way is kept;
2. moves the weights w on the pool of all earlier batches, if the method does;
3. adds the batch to the pool, in 8 bits, and trains the student for one pass over it, by `server`.

DENSE and Co-Boosting are one `Method` each: its loss, and how it changes samples and weights.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from fedstage.algorithm.global_trainers.distillation import distillation_loss
from fedstage.algorithm.one_shot.generators import Images
from fedstage.algorithm.one_shot.generators.world import Made, Method, World, combined
from fedstage.errors import FedstageError
from fedstage.models.image_generator import ImageGenerator, new_image_generator, standardised
from fedstage.randomness import Key, torch_generator
from fedstage.settings.generators import Adversarial
from fedstage.settings.server import Server
from fedstage.training.batches import all_batches, epoch_steps, public_batches
from fedstage.training.devices import on_device
from fedstage.training.images import augment, draw, normalise
from fedstage.training.optimisers import adam_descent, factor, optimiser_step, step_sizes
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


@dataclass(frozen=True)
class Synthesised:
    """The pool of all epochs, the last weights [m] and the student's mean loss."""

    images: Images
    weights: Tensor
    loss: float


def synthesise(
    settings: Adversarial,
    method: Method,
    world: World,
    server: Server,
    key: tuple[Key, ...],
) -> Synthesised:
    """Generate `server.epochs` batches, and train the student in place on them.

    Raises
    ------
    FedstageError
        If the student diverges, or a generator does at all of its steps.
    """
    epochs = server.epochs
    assert epochs is not None, "checked by OneShotRecipe"
    for teacher in world.teachers:
        teacher.eval().requires_grad_(False)
    device = next(world.student.parameters()).device
    weights = torch.full((len(world.teachers),), 1 / len(world.teachers), device=device)
    pool: Images | None = None
    learn = _learner(method, world, server, epochs, key)
    losses: list[Tensor] = []
    for epoch in range(epochs):
        made = generate(settings, method, world, weights, (*key, "batch", epoch))
        if pool is not None and method.moved is not None:
            order = torch_generator(*key, "weights", epoch)
            weights = _moved(method.moved, world, weights, pool, server.batch_size, epoch, order)
        pool = made if pool is None else _joined(pool, made)
        losses += learn(pool, weights, epoch)
    assert pool is not None, "there is at least one epoch"
    loss = torch.stack(losses).cpu()
    if not loss.isfinite().all():
        raise FedstageError(
            f"generator = {settings.name}: the student's loss is not finite; lower "
            f"server.learning_rate = {server.learning_rate}"
        )
    return Synthesised(pool, weights.cpu(), float(loss.mean()))


def _moved(
    moved: Callable[[Tensor, Tensor, Tensor, int], Tensor],
    world: World,
    weights: Tensor,
    pool: Images,
    size: int,
    epoch: int,
    generator: torch.Generator,
) -> Tensor:
    """Return the weights after a pass over the pool."""
    order = torch.randperm(len(pool.labels), generator=generator)
    for batch in all_batches(len(order), size):
        index = on_device(order[batch], weights.device)
        with torch.no_grad():
            logits = world.logits(normalise(pool.pixels[index], world.info))
        weights = moved(weights, logits, pool.labels[index], epoch)
    return weights


def _joined(pool: Images, made: Images) -> Images:
    return Images(torch.cat([pool.pixels, made.pixels]), torch.cat([pool.labels, made.labels]))


def _learner(
    method: Method, world: World, server: Server, epochs: int, key: tuple[Key, ...]
) -> Callable[[Images, Tensor, int], list[Tensor]]:
    """Return a function that trains the student for a pass, from the optimiser's last state.

    The rate follows the schedule from epoch to epoch.
    """
    parameters = list(world.student.parameters())
    move, distance = optimiser_step(parameters, server), distillation_loss(server)
    taken = 0

    def learn(pool: Images, weights: Tensor, epoch: int) -> list[Tensor]:
        nonlocal taken
        steps = epoch_steps(len(pool.labels), server.batch_size)
        generator = torch_generator(*key, "student", epoch)
        rate = server.learning_rate * factor(server.schedule, epoch, epochs)
        sizes = step_sizes(server, [rate] * (taken + steps), parameters[0])[taken:]
        taken += steps

        def teacher(pixels: Tensor) -> Tensor:
            return combined(weights, world.logits(pixels))

        world.student.train()
        losses = []
        batches = public_batches(len(pool.labels), server.batch_size, steps, generator)
        for batch, size in zip(batches, sizes, strict=True):
            drawn = on_device(draw(server.augmentation, len(batch), generator), weights.device)
            chosen = pool.pixels[on_device(batch, weights.device)]
            pixels = normalise(augment(chosen, drawn), world.info)
            if method.perturbed is not None:
                pixels = method.perturbed(teacher, pixels, generator)
            with torch.no_grad():
                logits = teacher(pixels)
            loss = distance(forward(world.student, pixels, world.numerics), logits)
            loss.backward()
            if server.clip_norm is not None:
                nn.utils.clip_grad_norm_(parameters, server.clip_norm)
            move(size)
            for parameter in parameters:
                parameter.grad = None
            losses.append(loss.detach())
        return losses

    return learn
