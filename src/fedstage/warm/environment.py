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
    if not _lives_here(environment.get("FEDSTAGE_OWNER", "")):
        environment["FEDSTAGE_OWNER"] = f"{socket.gethostname()}-{os.getpid()}"


def _lives_here(owner: str) -> bool:
    """Whether the owner is a process of this machine: a snakemake that runs this one as a job."""
    host, _, pid = owner.rpartition("-")
    return host == socket.gethostname() and pid.isdecimal() and alive(int(pid))
