"""Seconds until the first job: `snakemake -n` for graphs of many jobs, in each granularity.

uv run python -m tests.benchmarks.graph [--jobs N ...] [--output CSV]

The graph is that of FedAvg with 10 participants a round, of as many rounds as it takes for so many
jobs of a participant each; a job may also be a round, or a segment of 25 rounds.
"""

import sys
import tempfile
from pathlib import Path

from tests.benchmarks.projects import configure, jobs, snakemake
from tests.benchmarks.rows import parser, report

PARTICIPANTS = 10
GRANULARITIES = ("participant", "round", "segment")


def main(arguments: list[str]) -> None:
    """Measure and print."""
    options = parser(__doc__)
    options.add_argument("--jobs", type=int, nargs="*", default=[1000, 5000])
    chosen = options.parse_args(arguments)
    figures: dict[str, float] = {}
    for wanted in chosen.jobs:
        seconds = {}
        for granularity in GRANULARITIES:
            seconds[granularity], count = plan(wanted // (PARTICIPANTS + 1), granularity)
            figures[f"{wanted} jobs, by {granularity}: jobs"] = count
            figures[f"{wanted} jobs, by {granularity}: s"] = seconds[granularity]
        ratio = seconds["participant"] / seconds["segment"]
        figures[f"{wanted} jobs: participant / segment"] = ratio
    report("graph", figures, vars(chosen), chosen.output)


def plan(rounds: int, granularity: str) -> tuple[float, int]:
    """Return the seconds of a dry run, and its jobs."""
    with tempfile.TemporaryDirectory() as folder:
        base = {"clients": 20, "participants": PARTICIPANTS, "rounds": rounds}
        base["evaluate_every"] = rounds
        configure(Path(folder), base, "fedavg", {"granularity": granularity})
        seconds, printed = snakemake(Path(folder), "--dry-run", "--quiet", "rules")
        return seconds, jobs(printed)


if __name__ == "__main__":
    main(sys.argv[1:])
