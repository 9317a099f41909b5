"""What all tests share: one thread, and the quick selection that `pytest` without paths runs.

One thread for all: sums are reproducible, and tests do not compete for the cores.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

torch.set_num_threads(1)

# However pytest was called: commands that messages suggest do without `uv run`.
os.environ.pop("UV_RUN_RECURSION_DEPTH", None)
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"

#: Real runs in the quick selection: references, what runs again after a change, and a kill.
QUICK_RUNS = (
    "tests/differential/test_references.py",
    "tests/workflow/test_incremental.py",
    "tests/workflow/test_determinism.py::test_a_killed_run_goes_on_to_the_same_bytes",
)


def pytest_configure(config: pytest.Config) -> None:
    """Let pytest-xdist keep the order of files; by default the ones with the most tests go first.

    Real runs go first: one of them alone at the end would leave the other cores without work.
    """
    config.option.loadscopereorder = False


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that runs every test."""
    parser.addoption("--all", action="store_true", help="run all tests, also the slow ones")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Workers of pytest-xdist run what the main process has chosen."""
    node.workerinput["quick"] = _quick(node.config)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave slow tests out of the quick selection, and let real runs go first."""
    if _quick(config):
        slow = list(_slow(items))
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if item not in set(slow)]
    items.sort(key=lambda item: item.get_closest_marker("workflow") is None)


def _quick(config: pytest.Config) -> bool:
    """Neither paths nor markers nor --all are given."""
    if hasattr(config, "workerinput"):
        return bool(config.workerinput["quick"])
    named = config.args_source is pytest.Config.ArgsSource.ARGS
    return not (config.option.all or named or config.option.markexpr)


def _slow(items: list[pytest.Item]) -> Iterator[pytest.Item]:
    for item in items:
        real = item.get_closest_marker("workflow") or item.get_closest_marker("slurm")
        if item.get_closest_marker("slow") or (real and not item.nodeid.startswith(QUICK_RUNS)):
            yield item


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """End with how to run everything."""
    if _quick(terminalreporter.config):
        terminalreporter.write_line(
            "This was the quick selection. All tests: uv run pytest --all -n auto --dist loadfile"
        )
