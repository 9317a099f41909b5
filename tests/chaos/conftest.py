"""Where a test's pool of warm workers listens, what it ends with, and a run to be attacked."""

import os
import signal
import socket
import subprocess
import sys

import pytest

from . import damage


@pytest.fixture(scope="session", autouse=True)
def interrupts():
    """Give SIGINT its handler back: a shell's background jobs, and their children, ignore it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def owner():
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    yield process
    process.kill()
    process.wait()


@pytest.fixture
def environment(owner, tmp_path):
    runtime = tmp_path / "run"
    runtime.mkdir()
    return os.environ | {
        "XDG_RUNTIME_DIR": str(runtime),
        "FEDSTAGE_OWNER": f"{socket.gethostname()}-{owner.pid}",
        "FEDSTAGE_SOURCE": "this",
        "FEDSTAGE_WORKERS": "2",
    }


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory):
    """The folder of a finished run; tests attack copies of it."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    damage.make(folder)
    return folder
