"""The quickstart from nothing to its tables, and how much of that is training.

uv run python -m tests.benchmarks.quickstart [--output CSV]

The ratio is the time inside the stages that train or distil, over wall-clock time and cores.
"""

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.projects import jobs, snakemake
from tests.benchmarks.rows import REPOSITORY, parser, report

TRAINING = ("local_training", "local_model", "distillation")


def main(arguments: list[str]) -> None:
    """Measure and print."""
    chosen = parser(__doc__).parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(REPOSITORY / "config.yaml", folder)
        wall, printed = snakemake(Path(folder), "--scheduler", "greedy")
        records = [json.loads(path.read_text()) for path in Path(folder).rglob("*.json")]
    inside = sum(record["compute_s"] for record in records if record["stage"] in TRAINING)
    figures = {
        "seconds": wall,
        "jobs": float(jobs(printed)),
        "seconds of training": inside,
        "training / (seconds x cores)": inside / wall / len(os.sched_getaffinity(0)),
        "peak memory of a stage: MB": float(max(record["peak_memory_mb"] for record in records)),
    }
    report("quickstart", figures, vars(chosen), chosen.output)


if __name__ == "__main__":
    main(sys.argv[1:])
