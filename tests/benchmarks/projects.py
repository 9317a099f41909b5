"""Working folders in which benchmarks run the workflow."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from tests.benchmarks.rows import REPOSITORY

#: A recipe of small models on few images.
SMALL: dict[str, Any] = {
    "data": {"digits": {"test": 200, "held_out": 200}},
    "partition": "iid",
    "model": "cnn_small",
    "client": {"epochs": 1, "batch_size": 16, "learning_rate": 0.05},
    "server": {"steps": 20, "batch_size": 32, "learning_rate": 0.05},
    "numerics": {"device": "cpu"},
    "seed": 0,
}


def configure(
    folder: Path, base: Mapping[str, Any], method: str, execution: Mapping[str, Any]
) -> None:
    """Write the configuration of one method."""
    experiment = {
        "title": "Benchmark",
        "base": SMALL | dict(base),
        "grid": {"method": [method]},
        "scales": {"default": {}},
    }
    content = {
        "targets": ["measured"],
        "execution": dict(execution),
        "experiments": {"measured": experiment},
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(content))


def snakemake(folder: Path, *options: str) -> tuple[float, str]:
    """Run the workflow in a folder; return the seconds, and what it printed."""
    command = [
        sys.executable, "-m", "snakemake", "--snakefile", str(REPOSITORY / "Snakefile"),
        "--directory", str(folder), "--cores", "all", *options,
    ]  # fmt: skip
    scripts = str(Path(sys.executable).parent)
    environment = os.environ | {"PATH": scripts + os.pathsep + os.environ["PATH"]}
    begin = time.perf_counter()
    done = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    seconds = time.perf_counter() - begin
    if done.returncode:
        raise SystemExit(done.stdout)
    return seconds, done.stdout


def jobs(printed: str) -> int:
    """Return the number of jobs that snakemake planned."""
    return int(re.findall(r"^total +(\d+)", printed, re.MULTILINE)[0])
