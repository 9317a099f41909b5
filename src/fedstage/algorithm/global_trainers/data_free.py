"""A student and a generator of images learn from clients' models (FedFTG, Zhang et al., CVPR 2022).

No public data are needed. With n_k^y, the number of samples of class y on which member k of the
ensemble was trained (a client's own or, of an average, its group's),

    y ~ sum_k n_k^y                    alpha_k^y = n_k^y / sum_j n_j^y
    generator   G(z, y) descends its loss in `generators`, z ~ N(0, I), the student fixed
    student     min mean_x sum_k alpha_k^y D( f_k(x) -> f(x; w) ),  x = G(z, y) fixed

in turn for each batch. Images for students are made with the generator's running statistics.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from fedstage.algorithm.aggregation.averages import average_weights
from fedstage.algorithm.exchange.updates import part
from fedstage.algorithm.global_trainers.generators import Distance, Made, fused, generator_module
from fedstage.algorithm.global_trainers.students import Student
from fedstage.algorithm.global_trainers.teachers import Teacher
from fedstage.errors import FedstageError
from fedstage.models.image_generator import ImageGenerator, new_image_generator, standardised
from fedstage.models.loading import fill_model, state_of
from fedstage.protocol.teaching import teaching_of
from fedstage.randomness import Key, torch_generator
from fedstage.settings.generators import Dfrd, FedFtg, RoundGenerator
from fedstage.settings.numerics import Numerics
from fedstage.settings.server import Server
from fedstage.storage.tables import load_table
from fedstage.storage.tensors import load_tensors
from fedstage.training.losses import each_divergence
from fedstage.training.optimisers import adam_descent, descent, factor
from fedstage.training.passes import forward
from fedstage.weights import Weights

#: Begins the names of a moving average of generators, in a generator's file.
_OLDER = "older/"
#: The settings of a step, ``generator`` or ``server``, and the step's loss.
Loss = tuple[str, Tensor]


@dataclass(frozen=True)
class Classroom:
    """The teachers and the student, and what their forward passes need.

    Attributes
    ----------
    student : nn.Module
        Trained in place.
    teachers : sequence of nn.Module
        Frozen models of clients or averages of groups.
    counts : Tensor
        n_k^y, [m, classes].
    info : mapping
        Metadata of the clients' data: shape, classes, mean and std.
    """

    student: nn.Module
    teachers: Sequence[nn.Module]
    counts: Tensor
    info: Mapping[str, Any]
    numerics: Numerics

    def logits(self, pixels: Tensor, clients: Sequence[int]) -> Tensor:
        """Return the logits [m, b, classes] of members on images as models take them."""
        return torch.stack([forward(self.teachers[k], pixels, self.numerics) for k in clients])


def learn_without_data(
    student: Student,
    model: nn.Module,
    teachers: Sequence[Teacher],
    counts: Tensor,
    before: Path | None,
) -> tuple[Weights, dict[str, float]]:
    """Train a student's model in place; return the generator's weights, and metadata.

    Parameters
    ----------
    counts : Tensor
        n_k^y, [m, classes].
    before : Path, optional
        The generator of an earlier round, from which training continues.
    """
    recipe, teaching = student.config, teaching_of(student.config)
    generator = teaching.generator
    assert isinstance(generator, FedFtg), "the graph has this stage for such recipes only"
    models = [teacher.model for teacher in teachers]
    room = Classroom(model, models, counts, student.info, recipe.numerics)
    net = new_generator(generator, student.info, recipe.seed, student.group)
    older = None
    if before is not None:
        weights = load_tensors(before)[0]
        if average := part(weights, _OLDER):
            older = new_generator(generator, student.info, recipe.seed, student.group)
            fill_model(older, average, before)
            older.to(student.device).eval()
        fill_model(net, {name: weights[name] for name in state_of(net)}, before)
    net.to(student.device)
    key = (recipe.seed, "distillation", student.round, student.group)
    name = f"distillation, round {student.round}, group {student.group}"
    loss = fine_tune(room, net, generator, teaching.server, key, name, older)
    made = state_of(net)
    if isinstance(generator, Dfrd):
        shares = [generator.decay, 1 - generator.decay]
        average = average_weights([state_of(older or net), made], shares)
        made |= {f"{_OLDER}{name}": value for name, value in average.items()}
    return made, {"loss": loss}


def new_generator(
    settings: RoundGenerator, info: Mapping[str, Any], seed: int, group: int = 0
) -> ImageGenerator:
    """Return a generator of images of given classes, with random weights; its input is (z, y)."""
    inputs = settings.latent + int(info["classes"])
    drawn = torch_generator(seed, "generator", group)
    return new_image_generator(tuple(info["shape"]), inputs, settings.width, drawn)


def trained_by(participants: Path) -> tuple[int, ...]:
    """Return the clients whose models are averaged, from a group's table of participants."""
    rows = load_table(participants, ["client", "dropped"]).to_pylist()
    return tuple(row["client"] for row in rows if not row["dropped"])


def counts_of(
    clients: Sequence[Sequence[int]], counts: Mapping[int, Mapping[int, int]], classes: int
) -> Tensor:
    """Return n_k^y, int64 [m, classes], of the clients by which each member was trained."""
    rows = [[sum(counts[n].get(y, 0) for n in own) for y in range(classes)] for own in clients]
    held = torch.tensor(rows)
    if not held.any():
        raise FedstageError("generator: no member has a sample, because all clients diverged")
    return held


def shares_of(counts: Tensor) -> Tensor:
    """Return alpha [m, classes], float32, of counts [m, classes]; 0 for a class without samples."""
    return (counts.double() / counts.sum(0).clamp(min=1)).float()


def fine_tune(
    room: Classroom,
    net: ImageGenerator,
    settings: RoundGenerator,
    server: Server,
    key: tuple[Key, ...],
    name: str,
    older: ImageGenerator | None = None,
) -> float:
    """Train the student and the generator in place; return the student's mean loss.

    `name` names the student in messages. The student also learns from an `older` generator.

    Raises
    ------
    FedstageError
        If the student or the generator diverges.
    """
    steps = server.steps
    assert steps is not None, "checked by Recipe"
    distance = each_distance(server)
    rates = [server.learning_rate * factor(server.schedule, step, steps) for step in range(steps)]
    learn = descent(list(room.student.parameters()), server, rates)
    improve = _generator_steps(room, net, settings, server, steps, distance)
    losses: list[Loss] = []
    for batch, (latent, labels) in enumerate(drawn_batches(room, settings, server, steps, key)):
        shares = shares_of(room.counts).to(labels.device)[:, labels]
        losses += [("generator", loss) for loss in improve(batch, latent, labels, shares)]
        seen = [(1.0, *_lesson(room, net.eval(), settings, latent, labels, shares))]
        if older is not None and isinstance(settings, Dfrd):
            seen.append((settings.recall, *_lesson(room, older, settings, latent, labels, shares)))
        room.student.train()
        first = batch * settings.student_steps
        for step in range(first, min(first + settings.student_steps, steps)):
            parts = [
                weight * student_loss(forward(room.student, x, room.numerics), *taught, distance)
                for weight, x, taught in seen
            ]
            learn(loss := torch.stack(parts).sum(), step)
            losses.append(("server", loss.detach()))
    _check_finite(
        losses, name, {"generator": settings.learning_rate, "server": server.learning_rate}
    )
    return float(torch.stack([loss for who, loss in losses if who == "server"]).mean())


@torch.no_grad()
def _lesson(
    room: Classroom,
    net: ImageGenerator,
    settings: RoundGenerator,
    latent: Tensor,
    labels: Tensor,
    shares: Tensor,
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Return images, and the teachers' logits of them [m, b, C] with the shares [m, b]."""
    pixels = _images(room, net, latent, labels)
    members = room.logits(pixels, range(len(room.teachers)))
    if settings.fuses:
        members, shares = fused(members, shares)[None], torch.ones_like(shares[:1])
    return pixels, (members, shares)


def student_loss(own: Tensor, members: Tensor, shares: Tensor, distance: Distance) -> Tensor:
    """Return mean_x sum_k alpha_k^y D of logits [b, C] and [m, b, C], and of shares [m, b]."""
    far = torch.stack([distance(own, member) for member in members])
    return (shares * far).sum(0).mean()


def each_distance(server: Server) -> Distance:
    """Return the function tau^2 KL( sigma_tau(teacher), sigma_tau(student) ), by sample."""
    tau = server.temperature
    scale = tau**2 if server.tau_squared else 1.0

    def distance(student: Tensor, teacher: Tensor) -> Tensor:
        return scale * each_divergence(teacher * (server.sharpening / tau), student / tau)

    return distance


def drawn_batches(
    room: Classroom, settings: RoundGenerator, server: Server, steps: int, key: tuple[Key, ...]
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield z [b, latent] and labels [b], one batch per `student_steps` steps of the student."""
    device = next(room.student.parameters()).device
    of_labels, of_latent = torch_generator(*key, "labels"), torch_generator(*key, "latent")
    held = room.counts.sum(0).double()
    for _ in range(-(-steps // settings.student_steps)):
        labels = torch.multinomial(held, server.batch_size, replacement=True, generator=of_labels)
        latent = torch.randn(server.batch_size, settings.latent, generator=of_latent)
        yield latent.to(device), labels.to(device)


def _images(room: Classroom, net: ImageGenerator, latent: Tensor, labels: Tensor) -> Tensor:
    """Return G(z, y) as models take images, [b, C, H, W]."""
    classes = one_hot(labels, int(room.info["classes"])).to(latent.dtype)
    return standardised(net(torch.cat([latent, classes], dim=1)), room.info)


def _generator_steps(
    room: Classroom,
    net: ImageGenerator,
    settings: RoundGenerator,
    server: Server,
    steps: int,
    distance: Distance,
) -> Callable[[int, Tensor, Tensor, Tensor], list[Tensor]]:
    """Return the function that trains the generator on a batch and returns the losses."""
    how = generator_module(settings)
    turns = how.turns(settings, len(room.teachers))
    number = len(turns) * -(-steps // settings.student_steps)
    descend = adam_descent(list(net.parameters()), settings.learning_rate, number)

    def improve(batch: int, latent: Tensor, labels: Tensor, shares: Tensor) -> list[Tensor]:
        room.student.eval()
        net.train()
        losses = []
        for step, clients in enumerate(turns, batch * len(turns)):
            loss = generator_loss(room, net, settings, distance, clients, latent, labels, shares)
            descend(loss, step)
            losses.append(loss.detach())
        return losses

    return improve


def generator_loss(
    room: Classroom,
    net: ImageGenerator,
    settings: RoundGenerator,
    distance: Distance,
    clients: Sequence[int],
    latent: Tensor,
    labels: Tensor,
    shares: Tensor,
) -> Tensor:
    """Return the loss of a generator for the clients whose turn it is."""
    pixels = _images(room, net, latent, labels)
    own = forward(room.student, pixels, room.numerics)
    members = room.logits(pixels, clients)
    made = Made(latent, pixels, labels, own, members, shares[list(clients)], len(room.teachers))
    return generator_module(settings).loss(settings, made, distance)


def _check_finite(losses: Sequence[Loss], name: str, rates: Mapping[str, float]) -> None:
    """Raise an error for the first loss that is not finite, which spoils all later ones."""
    finite = torch.stack([loss for _, loss in losses]).isfinite().tolist()
    if all(finite):
        return
    who, _ = losses[finite.index(False)]
    what = "the generator's loss" if who == "generator" else "the loss"
    raise FedstageError(f"{name}: {what} is not finite; lower {who}.learning_rate = {rates[who]}")
