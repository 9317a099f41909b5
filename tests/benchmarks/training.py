"""Images a second of each way to train, against a plain PyTorch loop in the same run.

uv run python -m tests.benchmarks.training [--model NAME] [--only WAY ...] [--steps N]
    [--repeats N] [--output CSV]

By default ResNet-20, batches of 64, SGD with momentum. The plain loop is torch.optim.SGD in fp32
on images that are normalised beforehand, without a DataLoader. On a CPU everything runs in two
layouts: one process with two threads, and two processes with one thread each. The ways take turns,
and of each the median counts.
"""

import multiprocessing
import statistics
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection

import torch
from tests.benchmarks import models
from tests.benchmarks.rows import parser, report
from torch import nn

from fedstage.execution.fork_server import as_a_worker
from fedstage.randomness import torch_generator
from fedstage.settings.optimisation import Optimiser
from fedstage.training.devices import computes_bf16, prepare
from fedstage.training.loop import train

BATCH = 64
PLAIN = "plain loop"
#: Steps of a measurement, device, and name of the model.
Task = tuple[int, str, str]

SETTINGS = Optimiser(learning_rate=0.05, momentum=0.9, weight_decay=1e-4, batch_size=BATCH)


def main(arguments: list[str]) -> None:
    """Measure and print."""
    options = parser(__doc__)
    options.add_argument("--steps", type=int, default=5, help="of a measurement")
    options.add_argument("--repeats", type=int, default=3)
    options.add_argument("--model", default="resnet20")
    options.add_argument("--only", nargs="*", metavar="WAY", help="beside the plain loop")
    options.add_argument("--device", default="cpu")
    chosen = options.parse_args(arguments)
    layouts = [(1, 2), (2, 1)] if chosen.device == "cpu" else [(1, 1)]
    found = available(chosen.device)
    ways = [PLAIN, *(way for way in found if way in (chosen.only or found))]
    task = (chosen.steps, chosen.device, chosen.model)
    seconds = measure(ways, layouts, chosen.repeats, task)
    images = chosen.steps * BATCH
    rates = {at: images * at[1] / statistics.median(taken) for at, taken in seconds.items()}
    settings = vars(chosen) | {"batch": BATCH}
    report("training", figures(rates), settings, chosen.output)


def available(device: str) -> list[str]:
    """Return the ways that this machine can compute in."""
    return [
        name for name in models.WAYS if "bf16" not in name or device != "cpu" or computes_bf16()
    ]


def measure(
    ways: list[str], layouts: list[tuple[int, int]], repeats: int, task: Task
) -> dict[tuple[str, int, int], list[float]]:
    """Return the seconds of each way in each layout (processes, threads), one a repetition."""
    count = max(processes for processes, _ in layouts)
    plain, warm = ([start(task, warm) for _ in range(count)] for warm in (False, True))
    plan = [(way, *layout) for layout in layouts for way in ways]
    seconds: dict[tuple[str, int, int], list[float]] = {at: [] for at in plan}
    for way, processes, threads in plan:
        for worker in (plain if way == PLAIN else warm)[:processes]:
            together([worker], way, threads)
    for _ in range(repeats):
        for way, processes, threads in plan:
            workers = (plain if way == PLAIN else warm)[:processes]
            seconds[way, processes, threads].append(together(workers, way, threads))
    for worker in (*plain, *warm):
        worker.send(None)
    return seconds


def start(task: Task, warm: bool) -> Connection:
    """Start a process that trains as ordered: as a worker of a run does, or as Python starts."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    context.Process(target=work, args=(theirs, task, warm), daemon=True).start()
    return ours


def together(workers: list[Connection], way: str, threads: int) -> float:
    """Let workers train at the same time; return the seconds until the last is done."""
    begin = time.perf_counter()
    for worker in workers:
        worker.send((way, threads))
    for worker in workers:
        worker.recv()
    return time.perf_counter() - begin


def work(orders: Connection, task: Task, warm: bool) -> None:
    """Train as ordered, until there are no more orders."""
    if warm:
        as_a_worker()
    made: dict[tuple[str, int], Callable[[], None]] = {}
    while (order := orders.recv()) is not None:
        way, threads = order
        torch.set_num_threads(threads)
        if (way, threads) not in made:
            maker = plain_loop if way == PLAIN else engine
            made[way, threads] = maker(way, threads, task)
            made[way, threads]()
        made[way, threads]()
        orders.send(None)


def engine(way: str, threads: int, task: Task) -> Callable[[], None]:
    """Return a training by the engine."""
    steps, device, name = task
    chosen = models.numerics(way, threads, device)
    place = prepare(chosen)
    model, count = models.network(chosen, place, name), steps * BATCH
    images, labels = models.images(count, place), labels_of(count, place)
    batches, unused = list(torch.arange(count).split(BATCH)), torch_generator(0, "augmentation")
    loss = nn.functional.cross_entropy

    def run() -> None:
        train(model, images, labels, batches, SETTINGS, loss, models.INFO, unused, chosen)

    return run


def plain_loop(way: str, threads: int, task: Task) -> Callable[[], None]:
    """Return the loop that anybody would write."""
    steps, device, name = task
    place, count = torch.device(device), steps * BATCH
    model = models.network(models.numerics("fp32", threads, device), place, name).train()
    optimiser = torch.optim.SGD(
        model.parameters(),
        lr=SETTINGS.learning_rate,
        momentum=SETTINGS.momentum,
        weight_decay=SETTINGS.weight_decay,
    )
    pixels, labels = models.pixels(count, place), labels_of(count, place)

    def run() -> None:
        for index in torch.arange(count, device=place).split(BATCH):
            optimiser.zero_grad()
            value = nn.functional.cross_entropy(model(pixels[index]), labels[index])
            value.backward()
            optimiser.step()
        value.item()

    return run


def labels_of(count: int, device: torch.device) -> torch.Tensor:
    """Return labels of noise."""
    generator = torch_generator(0, "labels")
    return torch.randint(0, models.CLASSES, (count,), generator=generator).to(device)


def figures(rates: dict[tuple[str, int, int], float]) -> dict[str, float]:
    """Return images a second, and how many times those of one plain loop."""
    plain = next(rate for at, rate in rates.items() if at[:2] == (PLAIN, 1))
    found = {}
    for (way, processes, threads), rate in rates.items():
        name = f"{way}, processes x threads {processes} x {threads}"
        found[f"{name}: images/s"] = rate
        found[f"{name}: times the plain loop"] = rate / plain
    return found


if __name__ == "__main__":
    main(sys.argv[1:])
