"""Distillation with cached teachers, against a teacher that is recomputed in each step.

uv run python -m tests.benchmarks.distillation [--measured-steps N] [--output CSV]

Measured, in turns, are a step of a ResNet-20 student, an image seen by a member of the ensemble,
and both in one step, as if nothing were cached. From these follow the seconds of a distillation of
`--steps` with `--batch` images, `--public` images in all and `--members` models; by default those
of the paper (5,000 x 256, 50,000, K R = 4). Recomputing is no part of the package: it is written
here, with the numerics of each way.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable

import torch
from tests.benchmarks import models
from tests.benchmarks.rows import parser, report
from tests.benchmarks.training import available

from fedstage.algorithm.global_trainers.distillation import distillation_loss
from fedstage.randomness import torch_generator
from fedstage.settings.numerics import Numerics
from fedstage.settings.server import Server
from fedstage.training.devices import prepare
from fedstage.training.images import normalise
from fedstage.training.loop import train
from fedstage.training.passes import compute_logits, forward

Piece = Callable[[], None]


def main(arguments: list[str]) -> None:
    """Measure and print."""
    options = parser(__doc__)
    for name, value in {"steps": 5000, "batch": 256, "public": 50_000, "members": 4}.items():
        options.add_argument(f"--{name}", type=int, default=value)
    options.add_argument("--measured-steps", type=int, default=2)
    options.add_argument("--repeats", type=int, default=3)
    options.add_argument("--device", default="cpu")
    chosen = options.parse_args(arguments)
    ways = available(chosen.device)
    of = chosen.measured_steps, chosen.batch, chosen.members, chosen.device
    made = {(way, name): piece for way in ways for name, piece in pieces(way, *of).items()}
    seconds = in_turns(made, chosen.repeats)
    totals = {way: whole(seconds, way, chosen) for way in ways}
    report("distillation", figures(totals), vars(chosen), chosen.output)


def pieces(way: str, steps: int, batch: int, members: int, device: str) -> dict[str, Piece]:
    """Return a training from cached logits, one with members, and the members' logits."""
    chosen = models.numerics(way, 1, device)
    place = prepare(chosen)
    images = models.images(steps * batch, place)
    teachers = [models.network(chosen, place).eval() for _ in range(members)]
    student, logits = models.network(chosen, place), torch.zeros(len(images), models.CLASSES)

    def cached() -> None:
        taught(student, images, logits.to(place), steps, batch, chosen)

    def recomputed() -> None:
        for part in images.split(batch):
            teacher = said_now(teachers, part, chosen)
            taught(student, part, teacher, 1, batch, chosen)

    def speak() -> None:
        compute_logits(teachers[0], images, models.INFO, chosen)

    return {"cached": cached, "recomputed": recomputed, "logits": speak}


def taught(
    student: torch.nn.Module,
    images: torch.Tensor,
    teacher: torch.Tensor,
    steps: int,
    batch: int,
    chosen: Numerics,
) -> None:
    """Train a student on batches in order."""
    server = Server(learning_rate=0.05, batch_size=batch, steps=steps)
    batches, unused = list(torch.arange(len(images)).split(batch)), torch_generator(0, "none")
    loss = distillation_loss(server)
    train(student, images, teacher, batches, server, loss, models.INFO, unused, chosen)


@torch.no_grad()
def said_now(
    teachers: list[torch.nn.Module], images: torch.Tensor, chosen: Numerics
) -> torch.Tensor:
    """Return the mean logits of the members, computed for one batch."""
    pixels = normalise(images, models.INFO)
    return torch.stack([forward(teacher, pixels, chosen) for teacher in teachers]).mean(0)


def in_turns(made: dict[tuple[str, str], Piece], repeats: int) -> dict[tuple[str, str], float]:
    """Return the median seconds of each piece."""
    taken: dict[tuple[str, str], list[float]] = {key: [] for key in made}
    for repeat in range(repeats + 1):  # the first is to warm up
        for key, piece in made.items():
            begin = time.perf_counter()
            piece()
            if repeat:
                taken[key].append(time.perf_counter() - begin)
    return {key: statistics.median(values) for key, values in taken.items()}


def whole(
    seconds: dict[tuple[str, str], float], way: str, chosen: argparse.Namespace
) -> tuple[float, float]:
    """Return the seconds of a whole distillation, cached (with the logits) and recomputed."""
    measured = chosen.measured_steps
    logits = seconds[way, "logits"] / (measured * chosen.batch) * chosen.public * chosen.members
    steps = chosen.steps / measured
    return steps * seconds[way, "cached"] + logits, steps * seconds[way, "recomputed"]


def figures(totals: dict[str, tuple[float, float]]) -> dict[str, float]:
    """Return seconds and ratios, to the same way recomputed and to plain fp32 recomputed."""
    found, plain = {}, totals["fp32"][1]
    for way, (cached, recomputed) in totals.items():
        found[f"{way}: seconds, cached"] = cached
        found[f"{way}: seconds, recomputed"] = recomputed
        found[f"{way}: recomputed / cached"] = recomputed / cached
        found[f"{way}: recomputed in fp32 / cached"] = plain / cached
    return found


if __name__ == "__main__":
    main(sys.argv[1:])
