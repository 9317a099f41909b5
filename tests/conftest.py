"""What all tests share: one thread, and the quick selection that `pytest` without paths runs.

One thread for all: sums are reproducible, and tests do not compete for the cores.
"""

from collections.abc import Iterator

import pytest
import torch

torch.set_num_threads(1)

#: Real runs in the quick selection: references, what runs again after a change, and a kill.
QUICK_RUNS = (
    "tests/differential/test_references.py",
    "tests/workflow/test_incremental.py",
    "tests/workflow/test_determinism.py::test_a_killed_run_goes_on_to_the_same_bytes",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that runs every test."""
    parser.addoption("--all", action="store_true", help="run all tests, also the slow ones")
    parser.addoption("--quick-selection", action="store_true", help=HELP)


HELP = "leave out slow tests, as without paths and --all"


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Choose the quick selection; workers of pytest-xdist get the option from the main process."""
    if not hasattr(config, "workerinput") and not config.option.all:
        named = config.args_source is pytest.Config.ArgsSource.ARGS
        config.option.quick_selection |= not named and not config.option.markexpr


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave slow tests out of the quick selection."""
    if config.option.quick_selection:
        slow = list(_slow(items))
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if item not in set(slow)]


def _slow(items: list[pytest.Item]) -> Iterator[pytest.Item]:
    for item in items:
        real = item.get_closest_marker("workflow") or item.get_closest_marker("slurm")
        if item.get_closest_marker("slow") or (real and not item.nodeid.startswith(QUICK_RUNS)):
            yield item


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """End with how to run everything."""
    if terminalreporter.config.option.quick_selection:
        terminalreporter.write_line(
            "This was the quick selection. All tests: uv run pytest --all -n auto --dist loadfile"
        )
