"""Seconds of a FedSDD round on a GPU, in each precision, with and without graphs and streams.

uv run python -m tests.benchmarks.gpu [--ways NAME ...] [--graphs yes no] [--streams N ...]
    [--output CSV]

The setting of FedSDD's Table 3: `--clients` clients train a ResNet-20 for `--epochs` epochs of
`--samples` images in batches of 64 (crops, flips), then a student learns for `--steps` steps of 256
of 50,000 images from logits that are there. Images and labels are noise: nothing is downloaded. By
the engine alone, in one process: `--measured-epochs` of each client and `--measured-steps` of the
student, from which the seconds of the whole follow. The time to make a client's model and to record
its graph counts once, as it does in a round. Streams are `execution.clients_per_gpu`.

Without a GPU it says so and measures nothing; `--device cpu` tries the code out.
"""

import argparse
import sys
import time
from collections.abc import Callable, Generator
from itertools import product

import torch
from tests.benchmarks import models
from tests.benchmarks.distillation import taught
from tests.benchmarks.rows import parser, report
from tests.benchmarks.training import labels_of
from torch import nn

from fedstage.randomness import torch_generator
from fedstage.settings.numerics import Numerics
from fedstage.settings.optimisation import Client
from fedstage.training.batches import client_batches, take_turns
from fedstage.training.devices import prepare
from fedstage.training.loop import training

#: Of FedSDD: 8 of 20 clients, CIFAR-10; a distillation of CIFAR-100's images.
PAPER = {"clients": 8, "samples": 2500, "epochs": 40, "steps": 5000}
PUBLIC_BATCH = 256

WAYS = {
    "fp32": {},
    "tf32 channels_last": {"precision": "tf32", "memory_format": "channels_last"},
    "bf16 channels_last": {"precision": "bf16", "memory_format": "channels_last"},
}


def main(arguments: list[str]) -> None:
    """Measure and print."""
    chosen = options().parse_args(arguments)
    if chosen.device.startswith("cuda") and not torch.cuda.is_available():
        print("no GPU: nothing is measured (--device cpu tries the code out)")
        return
    for way, graphs in product(chosen.ways, chosen.graphs):
        numerics = numerics_of(way, graphs == "yes", chosen.device)
        name = f"{way}{', graphs' if numerics.cuda_graphs else ''}"
        distilled = distillation(numerics, chosen)
        tell({f"{name}: s a distillation": distilled}, chosen)
        for streams in chosen.streams:
            images, trained = local_training(numerics, streams, chosen)
            figures = {
                "client images/s": images,
                "s of local training": trained,
                "s a round": trained + distilled,
            }
            tell({f"{name}, {streams} streams: {key}": of for key, of in figures.items()}, chosen)


def tell(figures: dict[str, float], chosen: argparse.Namespace) -> None:
    """Report figures as they come: a run that is stopped keeps what it measured."""
    report("gpu", figures, vars(chosen), chosen.output)
    sys.stdout.flush()


def options() -> argparse.ArgumentParser:
    """Return the options."""
    found = parser(__doc__)
    for name, value in PAPER.items():
        found.add_argument(f"--{name}", type=int, default=value)
    found.add_argument("--measured-epochs", type=int, default=2)
    found.add_argument("--measured-steps", type=int, default=300)
    found.add_argument("--graphs", nargs="*", default=["no", "yes"], choices=["no", "yes"])
    found.add_argument("--streams", type=int, nargs="*", default=[1, 2, 4, 8])
    found.add_argument("--ways", nargs="*", default=list(WAYS), choices=list(WAYS))
    found.add_argument("--device", default="cuda")
    return found


def numerics_of(way: str, graphs: bool, device: str) -> Numerics:
    """Return the numerics of a way."""
    return Numerics.model_validate(WAYS[way] | {"device": device, "cuda_graphs": graphs})


def local_training(
    numerics: Numerics, streams: int, chosen: argparse.Namespace
) -> tuple[float, float]:
    """Return images a second of all clients together, and the seconds of all their epochs.

    A run of one epoch and one of some more: the difference is that of the epochs between them, and
    what a client takes besides counts once.
    """
    device, host = prepare(numerics), torch.device("cpu")
    data = models.images(chosen.samples, host), labels_of(chosen.samples, host)

    def run(epochs: int) -> None:
        works = (client(numerics, epochs, data, number) for number in range(chosen.clients))
        take_turns(works, streams, device)

    run(1)  # to warm up
    once = timed(lambda: run(1), device)
    more = timed(lambda: run(1 + chosen.measured_epochs), device)
    epoch = (more - once) / chosen.measured_epochs
    return chosen.clients * chosen.samples / epoch, once + (chosen.epochs - 1) * epoch


def client(
    numerics: Numerics, epochs: int, data: tuple[torch.Tensor, torch.Tensor], number: int
) -> Generator[None, None, None]:
    """Train one client, from its model to the weights that it would send."""
    settings = Client(
        epochs=epochs, batch_size=64, learning_rate=0.05, momentum=0.9, augmentation="crop_flip"
    )
    place, loss = torch.device(numerics.device), nn.functional.cross_entropy
    model, (images, labels) = models.network(numerics, place), (each.to(place) for each in data)
    batches = client_batches(len(images), settings, torch_generator(number, "batches"))
    draws = torch_generator(number, "augmentation")
    yield from training(
        model, images, labels, batches, settings, loss, models.INFO, draws, numerics
    )
    for value in model.state_dict().values():
        value.cpu()


def distillation(numerics: Numerics, chosen: argparse.Namespace) -> float:
    """Return the seconds of all steps of a student."""
    device, steps = prepare(numerics), chosen.measured_steps
    student = models.network(numerics, device)
    images = models.images(steps * PUBLIC_BATCH, device)
    teacher = torch.zeros(len(images), models.CLASSES, device=device)

    def run(number: int) -> None:
        seen = number * PUBLIC_BATCH
        taught(student, images[:seen], teacher[:seen], number, PUBLIC_BATCH, numerics)

    few = max(1, steps // 10)
    run(few)  # to warm up
    short, long = timed(lambda: run(few), device), timed(lambda: run(steps), device)
    return short + (chosen.steps - few) * (long - short) / (steps - few)


def timed(run: Callable[[], None], device: torch.device) -> float:
    """Return the seconds of a run."""
    if device.type == "cuda":
        torch.cuda.synchronize()
    begin = time.perf_counter()
    run()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - begin


if __name__ == "__main__":
    main(sys.argv[1:])
