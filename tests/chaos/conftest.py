"""A run to be attacked."""

import signal

import pytest

from . import damage


@pytest.fixture(scope="session", autouse=True)
def interrupts():
    """Give SIGINT its handler back: a shell's background jobs, and their children, ignore it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory):
    """The folder of a finished run; tests attack copies of it."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    damage.make(folder)
    return folder
