"""An experiment of one's own with natural clients, and the tests without its data."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.workflow

REPOSITORY = Path(__file__).parents[2]
OWN = """
title: Patients of four centres
base:
  data: {table: {folder: patients, label: outcome, client_column: centre, test_fraction: 0.25}}
  partition: natural
  participants: 4
  model: mlp
  rounds: 1
  client: {epochs: 2, batch_size: 16, learning_rate: 0.1}
grid: {method: [fedavg]}
scales: {default: {}}
"""
SHARED = "shared.experiments import"
#: Of the shipped experiments of papers a few, as all take a minute to resolve.
FEW = ("fedsdd_table2",)


def readers(folder):
    """Return the tests that may read experiments when they are collected."""
    own = folder.glob("unit/experiments/test_*.py")
    others = (path for path in folder.rglob("test_*.py") if SHARED in path.read_text())
    return {*own, *others}


def test_tests_are_collected_without_data_and_skip_what_needs_them(tmp_path):
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("tests", "workflow", "envs", "src"):
        # Without bytecode that is being written.
        shutil.copytree(REPOSITORY / name, copy / name, ignore=shutil.ignore_patterns("*.pyc.*"))
    for shipped in (copy / "workflow").glob("papers/*/experiments/*.yaml"):
        if shipped.stem not in FEW:
            shipped.unlink()
    for path in REPOSITORY.glob("*.*"):
        if path.is_file():
            shutil.copy(path, copy)
    (copy / "workflow/experiments/mine.yaml").write_text(OWN)
    environment = {name: value for name, value in os.environ.items() if name != "FEDSTAGE_DATA"}

    def pytest_in_copy(*arguments):
        command = [sys.executable, "-m", "pytest", "-q", "--assert=plain", *arguments]
        done = subprocess.run(command, cwd=copy, env=environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)  # fmt: skip
        assert done.returncode == 0, done.stdout
        return done.stdout

    pytest_in_copy("--collect-only", *map(str, readers(copy / "tests")))
    valid = "experiments/test_catalogue.py::test_shipped_configuration_and_experiments_are_valid"
    told = pytest_in_copy(f"tests/unit/{valid}")
    assert "1 skipped" in told
    assert "mine/default, method fedavg: clients: not given, and no data folder" in told
