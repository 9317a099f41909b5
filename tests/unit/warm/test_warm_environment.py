"""Which process a pool of warm workers belongs to."""

import os
import socket
from pathlib import Path

import pytest

from fedstage.warm.environment import prepare

HOST = socket.gethostname()
HERE = f"{HOST}-{os.getpid()}"


def owner(**inherited):
    environment = {"PATH": "/bin", **inherited}
    prepare(environment, Path("commands"))
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
    prepare(environment, Path("commands"))
    assert "XDG_RUNTIME_DIR" not in environment
