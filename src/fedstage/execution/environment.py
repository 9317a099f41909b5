"""What a workflow puts into the environment of its jobs, so that their commands run warm."""

import os
import socket
import sys
from collections.abc import MutableMapping
from pathlib import Path

import fedstage
from fedstage.execution.processes import alive
from fedstage.execution.source import fingerprint
from fedstage.settings.config_file import Execution


def prepare(environment: MutableMapping[str, str], commands: Path, execution: Execution) -> None:
    """Let `fedstage` in shell commands be the client, working for this process.

    Parameters
    ----------
    environment : mapping
        `os.environ`, which jobs inherit.
    commands : Path
        The folder with the shell script `fedstage`, put first into PATH.
    execution : Execution
        What the pool and the stages are told; a variable that is set already, by the user, is left
        as it is.
    """
    environment["PATH"] = f"{commands}{os.pathsep}{environment.get('PATH', '')}"
    environment["FEDSTAGE_PYTHON"] = sys.executable
    environment["FEDSTAGE_CLIENT"] = str(Path(fedstage.__file__).parent / "execution" / "client.py")
    environment["FEDSTAGE_SOURCE"] = fingerprint()
    if "SLURM_JOB_ID" in environment:
        # That of the login session, passed on to the job: a folder which this node may not have.
        environment.pop("XDG_RUNTIME_DIR", None)
    place = _place(environment)
    if not _lives_at(place, environment.get("FEDSTAGE_OWNER", "")):
        environment["FEDSTAGE_OWNER"] = f"{place}-{os.getpid()}"
    for name, value in {
        "FEDSTAGE_WORKERS": execution.workers,
        "FEDSTAGE_WORKERS_PER_GPU": execution.workers_per_gpu,
        "FEDSTAGE_CLIENTS_PER_GPU": execution.clients_per_gpu,
        "FEDSTAGE_TIMEOUT": execution.timeout,
    }.items():
        if value is not None and not environment.get(name):
            environment[name] = str(value)


def _place(environment: MutableMapping[str, str]) -> str:
    """Name this machine, and the SLURM job that all of its processes end with, if there is one."""
    job = environment.get("SLURM_JOB_ID")
    return socket.gethostname() + (f"-job{job}" if job else "")


def _lives_at(place: str, owner: str) -> bool:
    """Whether the owner is a process of this place: a snakemake that runs this one as a job."""
    its_place, _, pid = owner.rpartition("-")
    return its_place == place and pid.isdecimal() and alive(int(pid))
