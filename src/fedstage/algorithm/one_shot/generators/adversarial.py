"""Images that a server generates against an ensemble, and the student that learns beside it.

With the teacher z(x) = sum_i w_i f_i(x) of the clients' models, each epoch

1. generates a batch: a generator with new weights and its z, for random labels y, take `steps`
   steps of Adam on the method's loss L_G, and of all batches on the way that of the lowest stays;
2. moves the weights w on the pool of all batches before, if the method does;
3. adds the batch to the pool, in 8 bits, and teaches the student by a pass over it, with `server`.

DENSE and Co-Boosting are a `Method` each: what they minimise, how they change samples and weights.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from fedstage.algorithm.global_trainers.distillation import distillation_loss
from fedstage.algorithm.one_shot.generators import Images
from fedstage.errors import FedstageError
from fedstage.models.image_generator import new_image_generator
from fedstage.randomness import Key, torch_generator
from fedstage.settings.generators import Adversarial
from fedstage.settings.numerics import Numerics
from fedstage.settings.optimisation import Optimiser
from fedstage.settings.server import Server
from fedstage.training.batches import all_batches, epoch_steps, public_batches
from fedstage.training.devices import on_device
from fedstage.training.images import augment, draw, normalise
from fedstage.training.optimisers import optimiser_step, step_sizes
from fedstage.training.passes import forward
from fedstage.training.schedules import factor


@dataclass(frozen=True)
class Made:
    """A generated batch as the models see it.

    Attributes
    ----------
    teacher, student : Tensor
        Logits [b, classes].
    labels : Tensor
        int64 [b].
    statistics : Tensor
        The distance of batch statistics from the clients' running ones; 0 if nothing asks for it.
    """

    teacher: Tensor
    student: Tensor
    labels: Tensor
    statistics: Tensor


@dataclass(frozen=True)
class Method:
    """What tells one method from another.

    Attributes
    ----------
    loss : callable
        L_G of a generated batch.
    watches : bool
        Whether the loss reads the statistics.
    perturbed : callable, optional
        Changes normalised images, given the teacher and a generator, before they teach.
    moved : callable, optional
        Returns weights [m] after one batch of the pool: of these, logits [m, b, classes], labels
        and the epoch, from 0.
    """

    loss: Callable[[Made], Tensor]
    watches: bool = False
    perturbed: Callable[[Callable[[Tensor], Tensor], Tensor, torch.Generator], Tensor] | None = None
    moved: Callable[[Tensor, Tensor, Tensor, int], Tensor] | None = None


@dataclass(frozen=True)
class World:
    """What stays the same over all epochs: frozen models of clients, and how to compute."""

    teachers: Sequence[nn.Module]
    student: nn.Module
    info: Mapping[str, Any]
    numerics: Numerics

    def said(self, pixels: Tensor) -> Tensor:
        """Return the logits [m, b, classes] of all clients' models on normalised pixels."""
        return torch.stack([forward(one, pixels, self.numerics) for one in self.teachers])


@dataclass(frozen=True)
class Synthesised:
    """The pool of all epochs, the last weights [m] and the student's mean loss."""

    images: Images
    weights: Tensor
    loss: float


def combined(weights: Tensor, logits: Tensor) -> Tensor:
    """Return z [b, classes] = sum_i w_i z_i of weights [m] and logits [m, b, classes]."""
    return torch.einsum("m,mbc->bc", weights, logits)


def synthesise(
    settings: Adversarial,
    method: Method,
    world: World,
    server: Server,
    key: tuple[Key, ...],
) -> Synthesised:
    """Generate `server.epochs` batches, and train the student in place beside them.

    Raises
    ------
    FedstageError
        If the student, or a generator at each of its steps, diverges.
    """
    assert server.epochs is not None, "checked by OneShotLine"
    for one in world.teachers:
        one.eval().requires_grad_(False)
    device = next(world.student.parameters()).device
    weights = torch.full((len(world.teachers),), 1 / len(world.teachers), device=device)
    pool: Images | None = None
    learn = _learner(method, world, server, key)
    losses: list[Tensor] = []
    for epoch in range(server.epochs):
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


def generate(
    settings: Adversarial, method: Method, world: World, weights: Tensor, key: tuple[Key, ...]
) -> Images:
    """Return the batch of the lowest loss, of a generator with new weights and its z."""
    shape, classes = tuple(world.info["shape"]), int(world.info["classes"])
    device = weights.device
    net = new_image_generator(
        shape, settings.latent, settings.width, torch_generator(*key, "generator")
    )
    net.to(device).train()
    drawn = torch_generator(*key, "latent")
    latent = torch.randn(settings.batch_size, settings.latent, generator=drawn).to(device)
    labels = torch.randint(0, classes, (settings.batch_size,), generator=drawn).to(device)
    own = list(net.parameters())
    adam = Optimiser(
        optimiser="adam", learning_rate=settings.learning_rate, batch_size=settings.batch_size
    )
    parameters = [*own, nn.Parameter(latent)]
    move = optimiser_step(parameters, adam, settings.beta1)
    rates = [settings.learning_rate] * settings.steps
    sizes = step_sizes(adam, rates, parameters[0], settings.beta1)
    world.student.eval()
    lowest, best = torch.inf, None
    for step in range(settings.steps):
        pixels = net(parameters[-1])
        loss = method.loss(_seen(method, world, weights, pixels, labels))
        if float(loss.detach()) < lowest:
            lowest, best = float(loss.detach()), pixels.detach()
        for parameter, gradient in zip(
            parameters, torch.autograd.grad(loss, parameters), strict=True
        ):
            parameter.grad = gradient
        if settings.clip_norm is not None:
            nn.utils.clip_grad_norm_(own, settings.clip_norm)
        move(sizes[step])
    if best is None:
        raise FedstageError(
            f"generator = {settings.name}: the generator's loss is never finite; lower "
            f"generator.learning_rate = {settings.learning_rate}"
        )
    return Images(best.mul(255).round().to(torch.uint8), labels)


def standardised(pixels: Tensor, info: Mapping[str, Any]) -> Tensor:
    """Return pixels in [0, 1] as models take them, each channel standardised."""
    mean, std = (pixels.new_tensor(info[key]).view(1, -1, 1, 1) for key in ("mean", "std"))
    return (pixels - mean) / std


def _seen(method: Method, world: World, weights: Tensor, pixels: Tensor, labels: Tensor) -> Made:
    inputs = standardised(pixels, world.info)
    with watched(world.teachers if method.watches else ()) as distances:
        teacher = combined(weights, world.said(inputs))
    student = forward(world.student, inputs, world.numerics)
    found = torch.stack(distances).sum() if distances else teacher.new_zeros(())
    statistics = found / len(world.teachers)
    return Made(teacher, student, labels, statistics)


@contextmanager
def watched(models: Sequence[nn.Module]) -> Iterator[list[Tensor]]:
    """Collect || mean - running mean || + || var - running var || of each norm that maps pass."""
    found: list[Tensor] = []

    def hook(norm: nn.BatchNorm2d, inputs: tuple[Tensor, ...]) -> None:
        (maps,) = inputs
        mean, variance = maps.mean((0, 2, 3)), maps.var((0, 2, 3), correction=0)
        assert norm.running_mean is not None, "the norms of all models have running statistics"
        assert norm.running_var is not None, "the norms of all models have running statistics"
        found.append((mean - norm.running_mean).norm() + (variance - norm.running_var).norm())

    norms = [part for one in models for part in one.modules() if isinstance(part, nn.BatchNorm2d)]
    handles = [norm.register_forward_pre_hook(hook) for norm in norms]
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()


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
            said = world.said(normalise(pool.pixels[index], world.info))
        weights = moved(weights, said, pool.labels[index], epoch)
    return weights


def _joined(pool: Images, made: Images) -> Images:
    return Images(torch.cat([pool.pixels, made.pixels]), torch.cat([pool.labels, made.labels]))


def _learner(
    method: Method, world: World, server: Server, key: tuple[Key, ...]
) -> Callable[[Images, Tensor, int], list[Tensor]]:
    """Return a pass of the student over the pool, which goes on from the optimiser's state.

    The rate follows the schedule from epoch to epoch.
    """
    parameters = list(world.student.parameters())
    move, distance = optimiser_step(parameters, server), distillation_loss(server)
    taken = 0

    def learn(pool: Images, weights: Tensor, epoch: int) -> list[Tensor]:
        nonlocal taken
        steps = epoch_steps(len(pool.labels), server.batch_size)
        generator = torch_generator(*key, "student", epoch)
        assert server.epochs is not None, "checked by OneShotLine"
        rate = server.learning_rate * factor(server.schedule, epoch, server.epochs)
        sizes = step_sizes(server, [rate] * (taken + steps), parameters[0])[taken:]
        taken += steps

        def teacher(pixels: Tensor) -> Tensor:
            return combined(weights, world.said(pixels))

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
                said = teacher(pixels)
            loss = distance(forward(world.student, pixels, world.numerics), said)
            loss.backward()
            if server.clip_norm is not None:
                nn.utils.clip_grad_norm_(parameters, server.clip_norm)
            move(size)
            for parameter in parameters:
                parameter.grad = None
            losses.append(loss.detach())
        return losses

    return learn
