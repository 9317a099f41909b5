"""Seconds of a round with 8, 14 and 20 participants: the shape of FedSDD's Table 3, in small.

uv run python -m tests.benchmarks.round_time [--participants N ...] [--output CSV]

FedAvg, FedDF and FedSDD (K = 2) with a small network on handwritten digits, each run by itself with
warm workers. A round is from one main model to the next, as the times of their files have it, so
that no start-up counts. The ratio is to FedAvg with as many participants.
"""

import sys
import tempfile
from pathlib import Path

from tests.benchmarks.projects import configure, snakemake
from tests.benchmarks.rows import parser, report

METHODS = ("fedavg", "feddf", "fedsdd")


def main(arguments: list[str]) -> None:
    """Measure and print."""
    options = parser(__doc__)
    options.add_argument("--participants", type=int, nargs="*", default=[8, 14, 20])
    options.add_argument("--rounds", type=int, default=3)
    chosen = options.parse_args(arguments)
    figures: dict[str, float] = {}
    for participants in chosen.participants:
        taken = {method: seconds(method, participants, chosen.rounds) for method in METHODS}
        for method in METHODS:
            name = f"{participants} participants, {method}"
            figures[f"{name}: s a round"] = taken[method]
            figures[f"{name}: times FedAvg"] = taken[method] / taken["fedavg"]
    report("round_time", figures, vars(chosen), chosen.output)


def seconds(method: str, participants: int, rounds: int) -> float:
    """Return the mean seconds of the rounds but the first."""
    base = {"clients": participants, "participants": participants, "rounds": rounds}
    if method == "fedsdd":
        base["global_models"] = 2
    last = "aggregated" if method == "fedavg" else "distilled"
    with tempfile.TemporaryDirectory() as folder:
        configure(Path(folder), base, method, {})
        snakemake(Path(folder), "--scheduler", "greedy")
        files = Path(folder).glob(f"results/training/*/round_*/group_0/{last}.safetensors")
        times = sorted(path.stat().st_mtime for path in files)
    return (times[-1] - times[0]) / (rounds - 1)


if __name__ == "__main__":
    main(sys.argv[1:])
