"""Figures of a benchmark, printed and appended to a CSV: a row a figure."""

import argparse
import csv
import json
import os
import platform
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

REPOSITORY = Path(__file__).parents[2]
COLUMNS = ("benchmark", "figure", "value", "settings", "commit", "machine", "cores", "torch", "at")


def parser(text: str | None) -> argparse.ArgumentParser:
    """Return a parser with what all benchmarks take."""
    made = argparse.ArgumentParser(
        description=text, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--output", type=Path, help="CSV to append to")
    return made


def report(
    benchmark: str, figures: Mapping[str, float], settings: Mapping[str, Any], output: Path | None
) -> None:
    """Print figures, and append them to `output`."""
    for name, value in figures.items():
        print(f"{name:70}{value:10.3f}")
    if output is None:
        return
    about = {
        "benchmark": benchmark,
        "settings": json.dumps(settings, sort_keys=True, default=str),
        "commit": commit(),
        "machine": machine(),
        "cores": len(os.sched_getaffinity(0)),
        "torch": torch.__version__,
        "at": time.strftime("%Y-%m-%dT%H:%M:%S"),
    }
    new = not output.exists()
    with output.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if new:
            writer.writeheader()
        writer.writerows(about | {"figure": n, "value": v} for n, v in figures.items())


def commit() -> str:
    """Return the commit of the source, with a + where files differ from it."""
    command = ["git", "-C", str(REPOSITORY), "describe", "--always", "--dirty=+"]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def machine() -> str:
    """Return the processor's name, and the GPU's where there is one."""
    rows = Path("/proc/cpuinfo").read_text().splitlines()
    names = [row.partition(":")[2].strip() for row in rows if row.startswith("model name")]
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return " + ".join(filter(None, [names[0] if names else platform.machine(), gpu]))
