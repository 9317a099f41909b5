"""Ctrl-C and SIGTERM: the same command goes on."""

import os
import signal
import subprocess
import time

import pytest

from .conftest import environment

pytestmark = pytest.mark.workflow


@pytest.fixture(autouse=True)
def interrupts():
    """Give SIGINT its handler back: a shell's background jobs, and their children, ignore it."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def started(project):
    """Start a run in a group of its own, and wait until a training has begun."""
    process = subprocess.Popen(
        project.configure(methods=["fedavg"], rounds=6).command(), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment(), start_new_session=True,
    )  # fmt: skip
    deadline = time.monotonic() + 1800
    while not project.files("results/training/*/round_0001") and time.monotonic() < deadline:
        time.sleep(0.02)
    return process


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (signal.SIGINT, "Terminating processes on user request"),
        (signal.SIGTERM, "Will exit after finishing currently running jobs"),
    ],
)
def test_an_interrupted_run_says_so_and_goes_on(project, number, told):
    process = started(project)
    (os.killpg if number == signal.SIGINT else os.kill)(process.pid, number)
    output, _ = process.communicate(timeout=1800)
    assert process.returncode == 1
    assert told in output
    project.make()


def test_a_run_that_ignores_ctrl_c_loses_no_job(project):
    """As one that a shell's script has put into the background, but in the terminal's group."""
    ignoring = ["sh", "-c", "trap '' INT; exec \"$@\"", "sh"]
    process = subprocess.Popen(
        [*ignoring, *project.configure(methods=["fedavg"]).command()], text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment(),
        start_new_session=True,
    )  # fmt: skip
    while process.poll() is None:
        if project.files("results/data/*"):
            os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.05)
    assert process.returncode == 0, process.stdout.read()
