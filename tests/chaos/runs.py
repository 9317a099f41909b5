"""Small runs that are to be disturbed: their folders, processes, and what they leave behind."""

import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from ..same_bytes import digests
from ..workflow.conftest import REPOSITORY, tiny_config

TARGET = "results/tables/tiny/default.csv"
#: The variable by which all processes of a run are found, whoever their parent is.
MARK = "FEDSTAGE_CHAOS"

_WITHOUT_ROUNDS = {
    "training": "one_shot",
    "rounds": 1,
    "local_fraction": None,
    "aggregator_fraction": 0.2,
}
#: Methods whose clients train once.
ONE_SHOT = {
    "one_shot": _WITHOUT_ROUNDS
    | {
        "aggregator": {"mlp": {"hidden": 5}},
        "aggregator_training": {
            "federated": {"rounds": 6, "batch_size": 8, "learning_rate": 0.1},
        },
    },
    "one_shot_student": _WITHOUT_ROUNDS | {"aggregator": "weighted", "distillation": "l1"},
}

#: What makes a worker end itself, with which chance, before or after it renames a file that it has
#: written. Python runs it at the start of every process.
AT_A_RENAME = """
import os, random, signal, sys

def _at_a_rename(event, arguments, state={"due": False, "draw": None}):
    if state["due"]:
        state["due"] = False  # to end is an event, too
        _end("after")
    if event == "os.rename" and str(arguments[0]).endswith(".tmp"):
        if state["draw"] is None or state["pid"] != os.getpid():
            seed = f"{os.environ['FEDSTAGE_CHAOS_SEED']}-{os.getpid()}"
            state.update(draw=random.Random(seed), pid=os.getpid())
        if state["draw"].random() < float(os.environ["FEDSTAGE_CHAOS_RENAMES"]):
            if state["draw"].random() < 0.5:
                _end("before")
            state["due"] = True

def _end(when):
    file = os.open(os.environ["FEDSTAGE_CHAOS_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{when}\\n".encode())
    os.kill(os.getpid(), signal.SIGKILL)

if "FEDSTAGE_CHAOS_RENAMES" in os.environ:
    sys.addaudithook(_at_a_rename)
"""


@dataclass(frozen=True)
class Mode:
    """How the work is cut into jobs, and whether in warm workers."""

    granularity: str = "participant"
    warm: bool = True

    def __str__(self) -> str:
        return f"{self.granularity}, {'warm' if self.warm else 'cold'}"


SIZES = ("participant", "round", "segment")
MODES = [Mode(size, warm) for warm in (True, False) for size in SIZES]


class Folder:
    """A working folder, and the environment of its runs."""

    def __init__(self, path: Path, mode: Mode, **changes: object) -> None:
        self.path, self.mode, self.mark = path, mode, uuid.uuid4().hex
        self.python = path / "python"
        self.python.mkdir(parents=True, exist_ok=True)
        execution = {"granularity": mode.granularity, "segment_rounds": 1}
        config = tiny_config(**{"methods": ["feddf"], "execution": execution} | changes)
        config["experiments"]["tiny"]["methods"] |= ONE_SHOT
        (path / "config.yaml").write_text(yaml.safe_dump(config))
        (self.python / "sitecustomize.py").write_text(AT_A_RENAME)

    def environment(self, **variables: str) -> dict[str, str]:
        """Return that of a run of this folder, with the mark."""
        before = os.environ.get("PYTHONPATH")
        return os.environ | {
            "PYTHONPATH": os.pathsep.join(filter(None, [str(self.python), before])),
            MARK: self.mark,
            **variables,
        }

    def start(self, *options: str, **variables: str) -> subprocess.Popen[str]:
        """Start snakemake in a process group of its own, as a terminal would."""
        shutil.rmtree(self.path / ".snakemake/locks", ignore_errors=True)  # as --unlock does
        command = [
            sys.executable, "-m", "snakemake", TARGET, "--snakefile", str(REPOSITORY / "Snakefile"),
            "--directory", str(self.path), "--cores", "2", "--rerun-incomplete", "-p", *options,
            "--executor", "fedstage" if self.mode.warm else "local",
        ]  # fmt: skip
        return subprocess.Popen(
            command, text=True, env=self.environment(**variables), process_group=0,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def verify(self, limit: float) -> subprocess.CompletedProcess[str]:
        """Run ``fedstage verify``."""
        return subprocess.run(
            [sys.executable, "-m", "fedstage.execution.cli", "verify"],
            cwd=self.path,
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=limit,
        )

    def processes(self) -> dict[int, str]:
        """Return the running processes of this folder, and what each is."""
        found = dict(marked(self.mark))
        servers = {pid for pid, text in found.items() if "fedstage.execution.fork_server" in text}
        return {pid: kind(pid, text, servers) for pid, text in found.items()}

    def end(self, limit: float) -> list[str]:
        """Wait until no process is left; end those that still are, and return what they were."""
        deadline = time.monotonic() + limit
        while (left := self.processes()) and time.monotonic() < deadline:
            time.sleep(0.1)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        return list(left.values())

    def strays(self) -> list[str]:
        """Return the temporary files of writers."""
        found = (self.path / "results").rglob(".*.tmp")
        return [str(path.relative_to(self.path)) for path in found]

    def digests(self) -> dict[str, str]:
        """Return the SHA-256 of every artefact."""
        return digests(self.path)


def marked(mark: str) -> Iterator[tuple[int, str]]:
    """Yield the processes with a mark in their environment, and their commands."""
    wanted = f"{MARK}={mark}".encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            try:
                if wanted in (entry / "environ").read_bytes():
                    command = (entry / "cmdline").read_bytes().replace(b"\0", b" ")
                    if command:  # a zombie has none
                        yield int(entry.name), command.decode(errors="replace")
            except OSError:
                continue


def kind(pid: int, command: str, servers: set[int]) -> str:
    """Return what a process of a run is."""
    if pid in servers:
        return "worker" if parent(pid) in servers else "fork server"
    if "bin/fedstage " in command:
        return "stage"
    return "snakemake" if "snakemake" in command else command


def parent(pid: int) -> int | None:
    """Return the parent of a process, None if it has ended."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None
