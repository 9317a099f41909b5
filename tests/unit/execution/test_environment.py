"""Which process a pool of warm workers belongs to, and whom it serves."""

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from fedstage.execution.environment import prepare
from fedstage.plan.syntax import PACKAGE
from fedstage.settings.config_file import Execution

HOST = socket.gethostname()
HERE = f"{HOST}-{os.getpid()}"


def owner(**inherited):
    environment = {"PATH": "/bin", **inherited}
    prepare(environment, Path("commands"), Execution())
    return environment["FEDSTAGE_OWNER"]


def test_a_workflow_owns_its_pool():
    assert owner() == HERE


def test_a_job_of_a_workflow_on_this_machine_shares_the_workflows_pool():
    assert owner(FEDSTAGE_OWNER=f"{HOST}-{os.getppid()}") == f"{HOST}-{os.getppid()}"


@pytest.mark.parametrize("other", [f"elsewhere-{os.getppid()}", f"{HOST}-0", f"{HOST}-x", ""])
def test_an_owner_that_is_not_here_is_replaced(other):
    assert owner(FEDSTAGE_OWNER=other) == HERE


def test_a_slurm_job_has_a_pool_of_its_own():
    job = f"{HOST}-job7-{os.getpid()}"
    assert owner(SLURM_JOB_ID="7", FEDSTAGE_OWNER=f"{HOST}-{os.getppid()}") == job
    assert owner(SLURM_JOB_ID="7", FEDSTAGE_OWNER=f"{HOST}-job6-{os.getppid()}") == job


def test_the_stages_of_a_slurm_job_share_its_pool():
    first = f"{HOST}-job7-{os.getppid()}"
    assert owner(SLURM_JOB_ID="7", FEDSTAGE_OWNER=first) == first


def test_a_slurm_job_does_not_use_the_folder_of_the_login_session():
    environment = {"PATH": "/bin", "SLURM_JOB_ID": "7", "XDG_RUNTIME_DIR": "/run/user/0"}
    prepare(environment, Path("commands"), Execution())
    assert "XDG_RUNTIME_DIR" not in environment


def pool_settings(execution, **inherited):
    environment = {"PATH": "/bin", **inherited}
    prepare(environment, Path("commands"), Execution(**execution))
    names = ("WORKERS", "WORKERS_PER_GPU", "CLIENTS_PER_GPU", "TIMEOUT")
    return [environment.get(f"FEDSTAGE_{name}") for name in names]


def test_settings_reach_the_pool_by_variables():
    settings = {"workers": 3, "workers_per_gpu": 2, "clients_per_gpu": 5, "timeout": 60}
    assert pool_settings(settings) == ["3", "2", "5", "60"]


def test_settings_that_are_not_given_are_the_pools_business():
    assert pool_settings({}) == [None, "1", "1", None]


def test_variables_of_the_user_win_over_settings():
    numbers = {"WORKERS": "5", "WORKERS_PER_GPU": "4", "CLIENTS_PER_GPU": "7", "TIMEOUT": "9"}
    given = {f"FEDSTAGE_{name}": number for name, number in numbers.items()}
    settings = {"workers": 3, "workers_per_gpu": 2, "clients_per_gpu": 6, "timeout": 60}
    assert pool_settings(settings, **given) == ["5", "4", "7", "9"]
    assert pool_settings(settings, **dict.fromkeys(given, "")) == ["3", "2", "6", "60"]


def test_equal_copies_of_the_package_do_not_share_workers(tmp_path):
    """One of them may be edited while a pool of it is still there."""
    code = "from fedstage.execution.environment import fingerprint; print(fingerprint())"
    copy = shutil.copytree(PACKAGE, tmp_path / "src" / "fedstage")
    found = [
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONPATH": str(folder.parent)},
            check=True, capture_output=True,
        ).stdout
        for folder in (PACKAGE, PACKAGE, copy)
    ]  # fmt: skip
    assert found[0] == found[1] != found[2]
