"""How much of a whole run is training: FedAvg at the mini scale, through the workflow.

uv run python -m tests.benchmarks.efficiency [--granularity NAME] [--rounds N] [--seeds N]

Real CIFAR-10 is read from FEDSTAGE_DATA. The arithmetic that the run needs is what its trainings
take in the engine's loop alone: one process a core, side by side, with the same model, numerics and
numbers of samples, measured before and after. Efficiency is those seconds over the wall-clock
seconds of the run, from nothing to its table.
"""

import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import torch
import yaml
from tests.benchmarks import models
from tests.benchmarks.projects import snakemake
from tests.benchmarks.rows import REPOSITORY, parser, report
from torch import nn

from fedstage.execution.fork_server import as_a_worker
from fedstage.experiments.library import load_experiments
from fedstage.experiments.resolution import resolve
from fedstage.models.initialisation import initialise
from fedstage.models.loading import build
from fedstage.randomness import torch_generator
from fedstage.settings.config_file import Config
from fedstage.settings.optimisation import Client
from fedstage.settings.recipes import Recipe
from fedstage.settings.validation import validate
from fedstage.storage.yaml_files import load_yaml
from fedstage.training.batches import client_batches
from fedstage.training.devices import prepare
from fedstage.training.loop import train
from fedstage.training.passes import arrange

LIKE = "fedsdd_table2"


def main(arguments: list[str]) -> None:
    """Measure and print."""
    options = parser(__doc__)
    options.add_argument("--granularity", default="round")
    options.add_argument("--rounds", type=int, default=16)
    options.add_argument("--seeds", type=int, default=4)
    chosen = options.parse_args(arguments)
    content = configuration(chosen.rounds, chosen.seeds, chosen.granularity)
    recipe = first_line(content)
    rates = [rate(recipe)]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "config.yaml").write_text(yaml.safe_dump(content))
        wall, _ = snakemake(Path(folder), "--scheduler", "greedy")
        samples = trained_samples(Path(folder), recipe.client)
    rates.append(rate(recipe))
    needed = samples / statistics.mean(rates)
    figures = {
        "images trained on": float(samples),
        "images/s of the loop alone, before": rates[0],
        "images/s of the loop alone, after": rates[1],
        "seconds that the trainings need on all cores": needed,
        "seconds of the run": wall,
        "efficiency": needed / wall,
    }
    report("efficiency", figures, vars(chosen), chosen.output)


def configuration(rounds: int, seeds: int, granularity: str) -> dict[str, Any]:
    """Return a configuration with FedAvg at the mini scale of FedSDD Table 2."""
    experiment = {
        "title": "Benchmark",
        "like": LIKE,
        "grid": {"method": ["fedavg"], "partition.alpha": [1.0], "seed": list(range(seeds))},
        "table": {"rows": ["method"], "columns": ["partition.alpha"]},
        "scales": {"mini": {"base": {"rounds": rounds, "evaluate_every": rounds}}},
    }
    return {
        "targets": ["benchmark/mini"],
        "keep": "models",
        "execution": {"granularity": granularity},
        "experiments": {"benchmark": experiment},
    }


def first_line(content: dict[str, Any]) -> Recipe:
    """Return the recipe of the first seed."""
    config = validate(Config, content, "benchmark")
    experiments = load_experiments(config, REPOSITORY / "workflow")
    library = load_yaml(REPOSITORY / "workflow" / "methods.yaml")
    recipe = resolve("benchmark", experiments["benchmark"], "mini", library)[0].recipe
    assert isinstance(recipe, Recipe)
    return recipe


def trained_samples(folder: Path, client: Client) -> int:
    """Return how many images all participants of all rounds trained on, epochs counted."""
    tables = list(folder.glob("results/training/*/round_*/*/participants.parquet"))
    assert client.epochs is not None
    return sum(int(pd.read_parquet(table)["samples"].sum()) for table in tables) * client.epochs


def rate(recipe: Recipe) -> float:
    """Return the images a second of the engine's loop, in one process on each core at once."""
    cores = len(os.sched_getaffinity(0))
    context = multiprocessing.get_context("spawn")
    with context.Pool(cores, as_a_worker) as pool:
        pool.map(loop, [(recipe, 1)] * cores, chunksize=1)
        begin = time.perf_counter()
        counts: Sequence[int] = pool.map(loop, [(recipe, 10)] * cores, chunksize=1)
        return sum(counts) / (time.perf_counter() - begin)


def loop(order: tuple[Recipe, int]) -> int:
    """Train a client of the average size, some times over; return the images trained on."""
    recipe, times = order
    device = prepare(recipe.numerics)
    model = build(recipe.model, (3, 32, 32), models.CLASSES)
    initialise(model, torch_generator(0, "weights"))
    model = arrange(model.to(device), recipe.numerics)
    size = int(getattr(recipe.data, "train_size", 5000)) // recipe.clients
    images = models.images(size, device)
    labels = torch.randint(0, models.CLASSES, (size,), generator=torch_generator(0, "labels"))
    unused, loss = torch_generator(0, "augmentation"), nn.functional.cross_entropy
    for _ in range(times):
        batches = client_batches(size, recipe.client, torch_generator(0, "batches"))
        train(
            model,
            images,
            labels,
            batches,
            recipe.client,
            loss,
            models.INFO,
            unused,
            recipe.numerics,
        )
    return size * (recipe.client.epochs or 0) * times


if __name__ == "__main__":
    main(sys.argv[1:])
