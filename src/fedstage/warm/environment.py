"""What a workflow puts into the environment of its jobs, so that their commands run warm."""

import os
import socket
import sys
from collections.abc import MutableMapping
from pathlib import Path

import fedstage
from fedstage.source import fingerprint
from fedstage.warm.processes import alive


def prepare(environment: MutableMapping[str, str], commands: Path) -> None:
    """Let `fedstage` in shell commands be the client, working for this process.

    Parameters
    ----------
    environment : mapping
        `os.environ`, which jobs inherit.
    commands : Path
        The folder with the shell script `fedstage`, put first into PATH.
    """
    environment["PATH"] = f"{commands}{os.pathsep}{environment.get('PATH', '')}"
    environment["FEDSTAGE_PYTHON"] = sys.executable
    environment["FEDSTAGE_CLIENT"] = str(Path(fedstage.__file__).parent / "warm" / "client.py")
    environment["FEDSTAGE_SOURCE"] = fingerprint()
    if "SLURM_JOB_ID" in environment:
        # That of the login session, passed on to the job: a folder which this node may not have.
        environment.pop("XDG_RUNTIME_DIR", None)
    place = _place(environment)
    if not _lives_at(place, environment.get("FEDSTAGE_OWNER", "")):
        environment["FEDSTAGE_OWNER"] = f"{place}-{os.getpid()}"


def _place(environment: MutableMapping[str, str]) -> str:
    """Name this machine, and the SLURM job that all of its processes end with, if there is one."""
    job = environment.get("SLURM_JOB_ID")
    return socket.gethostname() + (f"-job{job}" if job else "")


def _lives_at(place: str, owner: str) -> bool:
    """Whether the owner is a process of this place: a snakemake that runs this one as a job."""
    its_place, _, pid = owner.rpartition("-")
    return its_place == place and pid.isdecimal() and alive(int(pid))
