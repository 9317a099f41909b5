"""Seconds of a round with 8, 14 and 20 participants: the shape of FedSDD's Table 3, in small.

uv run python -m tests.benchmarks.round_time [--participants N ...] [--output CSV]

FedAvg, FedDF and FedSDD (K = 2) with a small network on handwritten digits, each run by itself with
warm workers. Counted is the time from the first update to the last model, as their files have it,
so that neither start-up nor evaluation counts: the groups of FedSDD do not wait for each other, so
that the time of a single round says little. The ratio is to FedAvg with as many participants.
"""

import sys
import tempfile
from pathlib import Path

from tests.benchmarks.projects import configure, snakemake
from tests.benchmarks.rows import parser, report


def main(arguments: list[str]) -> None:
    """Measure and print."""
    options = parser(__doc__)
    options.add_argument("--participants", type=int, nargs="*", default=[8, 14, 20])
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--methods", nargs="*", default=["fedavg", "feddf", "fedsdd"])
    chosen = options.parse_args(arguments)
    figures: dict[str, float] = {}
    for participants in chosen.participants:
        taken = {method: seconds(method, participants, chosen.rounds) for method in chosen.methods}
        for method in chosen.methods:
            name = f"{participants} participants, {method}"
            figures[f"{name}: s a round"] = taken[method]
            figures[f"{name}: times FedAvg"] = taken[method] / taken["fedavg"]
    report("round_time", figures, vars(chosen), chosen.output)


def seconds(method: str, participants: int, rounds: int) -> float:
    """Return the mean seconds of a round."""
    base = {"clients": participants, "participants": participants, "rounds": rounds}
    if method == "fedsdd":
        base["global_models"] = 2
    with tempfile.TemporaryDirectory() as folder:
        configure(Path(folder), base, method, {})
        snakemake(Path(folder), "--scheduler", "greedy")
        files = Path(folder).glob("results/training/*/round_*/**/*.safetensors")
        times = [path.stat().st_mtime for path in files]
    return (max(times) - min(times)) / rounds


if __name__ == "__main__":
    main(sys.argv[1:])
