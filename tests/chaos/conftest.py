"""Where a test's pool of warm workers listens, and what it ends with."""

import os
import socket
import subprocess
import sys

import pytest


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
