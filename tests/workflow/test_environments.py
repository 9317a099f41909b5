"""A run in an environment that is nobody's favourite."""

import shlex
import subprocess

import pytest

from .conftest import environment

pytestmark = pytest.mark.workflow

ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}


def test_no_locale_closed_output_and_a_long_temporary_folder(project, tmp_path):
    project.configure(methods=["fedavg"])
    long = tmp_path / ("é" * 90)
    long.mkdir()
    (code, errors) = call(project, ASCII | {"TMPDIR": str(long)}, ">&- <&-")
    assert code == 0, errors
    assert "Traceback" not in errors
    assert (project.path / "results/tables/tiny/default.md").exists()


def call(project, variables, redirected):
    done = subprocess.run(
        f"{shlex.join(project.command())} {redirected}",
        shell=True,
        env=environment() | variables,
        stderr=subprocess.PIPE,
        timeout=1800,
        executable="/bin/bash",
    )
    return done.returncode, done.stderr.decode(errors="replace")
