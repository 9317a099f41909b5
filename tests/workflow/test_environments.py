"""A run in an environment that is nobody's favourite."""

import os
import shlex
import subprocess

import pytest

from .conftest import environment

pytestmark = pytest.mark.workflow

ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}


def test_no_locale_closed_output_a_long_temporary_folder_and_a_name_that_is_taken(
    project, tmp_path
):
    project.configure(methods=["fedavg"])
    long = tmp_path / ("é" * 90)
    (long / f"fedstage-{os.getuid()}").mkdir(parents=True)
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / f"fedstage-{os.getuid()}").symlink_to("/nowhere")
    variables = ASCII | {"TMPDIR": str(long), "XDG_RUNTIME_DIR": str(taken)}
    (code, errors) = call(project, variables, ">&- <&-")
    assert code == 0, errors
    assert "Traceback" not in errors
    assert (project.path / "results/tables/tiny/default.md").exists()


def call(project, variables, redirected):
    # A pool of this run's own, so that it takes its place as these variables say.
    own = {key: value for key, value in environment().items() if key != "FEDSTAGE_OWNER"}
    done = subprocess.run(
        f"{shlex.join(project.command())} {redirected}",
        shell=True,
        env=own | variables,
        stderr=subprocess.PIPE,
        timeout=600,
        executable="/bin/bash",
    )
    return done.returncode, done.stderr.decode(errors="replace")
