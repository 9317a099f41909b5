"""The environment of a workflow's jobs, in which their commands run warm."""

import hashlib
import os
import signal
import socket
import sys
from collections.abc import MutableMapping
from functools import cache
from pathlib import Path

from fedstage.execution.client import process_status
from fedstage.settings.config_file import Execution
from fedstage.settings.registry import PLUGINS


def prepare(environment: MutableMapping[str, str], commands: Path, execution: Execution) -> None:
    """Make `fedstage` in the shell commands of jobs the client of a pool of this process.

    `environment` is `os.environ`, which jobs inherit, `commands` the folder with the shell script
    `fedstage`. Variables that the user has set take precedence over the settings.
    """
    environment["PATH"] = f"{commands}{os.pathsep}{environment.get('PATH', '')}"
    environment["FEDSTAGE_PYTHON"] = sys.executable
    environment["FEDSTAGE_CLIENT"] = str(Path(__file__).parent / "client.py")
    environment["FEDSTAGE_SOURCE"] = fingerprint()
    # Otherwise Ctrl-C, which a terminal sends to all, would end jobs of a run that continues.
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    environment["FEDSTAGE_IGNORES_CTRL_C"] = "1" if ignored else "0"
    if "SLURM_JOB_ID" in environment:  # the folder is on the login node, perhaps not on this one
        environment.pop("XDG_RUNTIME_DIR", None)
    job = environment.get("SLURM_JOB_ID")  # all processes of a SLURM job end with it
    place = socket.gethostname() + (f"-job{job}" if job else "")
    if not _lives_at(place, environment.get("FEDSTAGE_OWNER", "")):
        environment["FEDSTAGE_OWNER"] = f"{place}-{os.getpid()}"
    for key in ("workers", "workers_per_gpu", "clients_per_gpu", "timeout"):
        name, value = f"FEDSTAGE_{key.upper()}", getattr(execution, key)
        if value is not None and not environment.get(name):
            environment[name] = str(value)


def _lives_at(place: str, owner: str) -> bool:
    """Whether the owner is alive at this place: a snakemake that runs this one as a job."""
    owner_place, _, pid = owner.rpartition("-")
    return owner_place == place and pid.isdecimal() and alive(int(pid))


def alive(pid: int) -> bool:
    """Whether a process exists that is not a zombie."""
    try:
        return process_status(str(pid))[0] not in "ZX"
    except OSError:
        return False


@cache
def fingerprint() -> str:
    """Return a digest of the package's place, and of its source and the plugins' source on disk.

    The place counts because one of two equal copies may be edited while a pool of it still exists.
    """
    package = Path(__file__).parent.parent
    digest = hashlib.sha256(str(package).encode() + b"\0")
    for path in sorted(package.rglob("*.py")):
        digest.update(str(path.relative_to(package)).encode() + b"\0" + path.read_bytes())
    for name, path in sorted(PLUGINS.files.items()):
        digest.update(name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]
