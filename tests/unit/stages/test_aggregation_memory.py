"""The memory of an aggregation does not grow with the number of participants."""

import csv
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[3]
FEW, MANY = 2, 14
CASES = ("average", "Adam", "SCAFFOLD")


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Peak memory beyond imports in multiples of a model of 8 MB, by case and participants."""
    output = tmp_path_factory.mktemp("memory") / "figures.csv"
    subprocess.run(
        [
            sys.executable, "-m", "tests.benchmarks.aggregation", "--cases", *CASES,
            "--participants", str(FEW), str(MANY), "--hidden", *["512"] * 8,
            "--output", str(output),
        ],
        cwd=REPOSITORY, check=True, capture_output=True,
    )  # fmt: skip
    with output.open() as file:
        return {row["figure"]: float(row["value"]) for row in csv.DictReader(file)}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_many_participants_take_no_more_memory_than_few(measured, case):
    few, many = (measured[f"{case}, {number} participants: models"] for number in (FEW, MANY))
    assert many < few + 2, "in models: all of them in memory would be 12 more"
    assert many < 7, "of so small a model, whose small tensors stay in memory"
