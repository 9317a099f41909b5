"""Ctrl-C and SIGTERM: one line, the last, and the same command goes on."""

import os
import re
import signal
import subprocess
import time

import pytest

from .conftest import environment

pytestmark = pytest.mark.workflow

LINE = "fedstage: interrupted; the same command goes on"


@pytest.fixture(autouse=True)
def interrupts():
    """Give SIGINT its handler back: a shell's background jobs, and their children, ignore it."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupted(project, number, *, group):
    """Send a signal once a training has begun, to snakemake or to its group."""
    process = subprocess.Popen(
        project.command(), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env=environment(), start_new_session=True,
    )  # fmt: skip
    deadline = time.monotonic() + 120
    while not project.files("results/training/*/round_0001") and time.monotonic() < deadline:
        time.sleep(0.02)
    (os.killpg if group else os.kill)(process.pid, number)
    output, _ = process.communicate(timeout=120)
    return process.returncode, output


@pytest.mark.parametrize("group", [True, False], ids=["from a terminal", "by its number"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_is_no_fault(project, number, group):
    project.configure(methods=["fedavg"], rounds=6)
    code, output = interrupted(project, number, group=group)
    assert code == 1
    told = [line for line in output.splitlines() if line.startswith("fedstage")]
    assert [line for line in told if "methods: no run uses" not in line] == [LINE]
    assert output.splitlines()[-1] == LINE
    assert "Traceback" not in output
    assert re.search(r"^\d+ of \d+ jobs done, interrupted, in ", output, re.MULTILINE)
    assert "failed" not in output
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


def test_a_run_is_refused_where_another_works_and_goes_on_where_one_was_killed(project):
    project.configure(methods=["fedavg"], rounds=6)
    process = project.start()
    deadline = time.monotonic() + 120
    while not project.files("results/training/*/round_0001") and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGSTOP)  # so that it does not end before it is looked at
    refused = project.call(short=True)
    assert refused.code == 1
    assert refused.output.splitlines()[-1] == (
        f"fedstage: another run (process {process.pid}) works in this folder"
    )
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    done = project.make(short=True)
    assert (
        "fedstage: a run that was killed had locked this folder "
        f"(process {process.pid}); its lock is removed" in done.output.splitlines()
    )
    assert not project.files(".snakemake/log/*.process")


#: Python runs it at the start of a process, which then interrupts itself as it opens a file.
AT_A_FILE = """
import os, signal, sys

def _at_a_file(event, arguments):
    if event == "open" and str(arguments[0]).endswith({name!r}) and "snakemake" in sys.argv[0]:
        os.kill(os.getpid(), signal.{signal})

sys.addaudithook(_at_a_file)
"""


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
@pytest.mark.parametrize("name", ["config.yaml", "methods.yaml", "results.smk", ".lock"])
def test_an_interrupted_plan_is_one_line(project, tmp_path, name, number):
    """While the Snakefile, the configuration or the library is read, and while jobs are planned."""
    run = interrupted_at(name, number, project, tmp_path)
    assert run.code != 0
    assert run.output.splitlines()[-1] == LINE
    assert "Traceback" not in run.output


@pytest.mark.parametrize("name", ["config.yaml", "results.smk"])
def test_an_interrupted_dry_run_does_not_go_on(project, tmp_path, name):
    run = interrupted_at(name, "SIGINT", project, tmp_path, "--dry-run")
    assert run.code != 0
    assert run.output.splitlines()[-1] == "fedstage: interrupted"


def interrupted_at(name, number, project, tmp_path, *arguments):
    """Call snakemake, which gets a signal as it opens a file of this name."""
    (tmp_path / "sitecustomize.py").write_text(AT_A_FILE.format(name=name, signal=number))
    return project.call(*arguments, PYTHONPATH=str(tmp_path), short=True)
