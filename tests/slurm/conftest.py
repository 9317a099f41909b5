"""A cluster for the session, and projects whose jobs go to it."""

import importlib.util
import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

HERE = Path(__file__).parent


def load(path: Path) -> ModuleType:
    """Import a file of the tests, which are no package."""
    spec = importlib.util.spec_from_file_location(
        f"slurm_tests_{path.parent.name}_{path.stem}", path
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


clusters = load(HERE / "cluster.py")
workflow = load(HERE.parent / "workflow/conftest.py")

PROFILE = workflow.REPOSITORY / "workflow/profiles/slurm"
# The cluster has no accounting, and is asked as often as it likes.
OPTIONS = [
    "--workflow-profile", str(PROFILE), "--slurm-status-command", "squeue",
    "--slurm-init-seconds-before-status-checks", "1", "--latency-wait", "5",
]  # fmt: skip


@dataclass(frozen=True)
class Pool:
    """A pool of warm workers that was seen, by its process and the socket it listens at."""

    process: int
    socket: Path

    def belongs_to(self, job: Any) -> bool:
        """Whether the pool's owner is a process of this job."""
        return f"-job{job.id}-" in self.socket.name


@dataclass(frozen=True)
class Submitter:
    """A project, and a login session on the cluster from which snakemake submits its jobs."""

    project: Any
    cluster: Any
    wait_until = staticmethod(clusters.wait_until)

    @property
    def session(self) -> Path:
        """The folder of the login session, where only the login node's pool may be."""
        return Path(f"{self.project.path}/session")

    @property
    def temporary(self) -> Path:
        """The folder for temporary files, of all nodes."""
        return Path(f"{self.project.path}/tmp")

    @property
    def environment(self) -> dict[str, str]:
        own = self.cluster.environment
        path = f"{Path(sys.executable).parent}{os.pathsep}{own['PATH']}"
        folders = {"XDG_RUNTIME_DIR": str(self.session), "TMPDIR": str(self.temporary)}
        return own | {"PATH": path} | folders

    def start(self, *arguments: str) -> "subprocess.Popen[bytes]":
        """Start snakemake with the profile, its output in a file."""
        for folder in (self.session, self.temporary):
            folder.mkdir(exist_ok=True)
        command = [
            sys.executable, str(HERE / "fast_polling.py"), *OPTIONS,
            "--snakefile", str(workflow.REPOSITORY / "Snakefile"),
            "--directory", str(self.project.path), *arguments,
        ]  # fmt: skip
        with open(self.project.path / "output.txt", "w") as output:
            return subprocess.Popen(
                command,
                cwd=self.project.path,
                env=self.environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def finish(self, process: "subprocess.Popen[bytes]", seconds: float = 300) -> set[Pool]:
        """Wait for a successful end; return the pools there were meanwhile."""
        seen: set[Pool] = set()
        end = time.monotonic() + seconds
        while process.poll() is None:
            seen |= self.pools()
            if time.monotonic() > end:
                process.kill()
            time.sleep(0.1)
        assert process.returncode == 0, (self.project.path / "output.txt").read_text()
        return seen

    def pools(self) -> set[Pool]:
        """Return the pools of this project, without their workers."""
        served = self._served()
        return {Pool(pid, path) for pid, path in served.items() if parent(pid) not in served}

    def busy_worker(self, job: Any) -> int | None:
        """Return a worker of a job that has computed for some time."""
        served = self._served()
        for pid, path in served.items():
            ours = Pool(pid, path).belongs_to(job) and parent(pid) in served
            if ours and seconds_of_work(pid) > 0.3:
                return pid
        return None

    def _served(self) -> dict[int, Path]:
        """Return pools and workers with their sockets."""
        found = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal():
                with suppress(OSError):
                    command = (entry / "cmdline").read_bytes().decode().split("\0")
                    if "fedstage.execution.pool" in command:
                        found[int(entry.name)] = Path(command[-2])
        return {pid: path for pid, path in found.items() if path.is_relative_to(self.project.path)}


def status(pid: int) -> list[str]:
    """Return the fields of a process after its name; none when it has gone."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return []


def parent(pid: int) -> int:
    """Return a process's parent, 0 when it has gone."""
    fields = status(pid)
    return int(fields[1]) if fields else 0


def seconds_of_work(pid: int) -> float:
    """Return the processor time of a process, without the system's."""
    fields = status(pid)
    return int(fields[11]) / os.sysconf("SC_CLK_TCK") if fields else 0.0


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """The cluster of the session."""
    reason = clusters.missing()
    if importlib.util.find_spec("snakemake_executor_plugin_slurm") is None:
        reason = reason or "no snakemake_executor_plugin_slurm: uv sync --group slurm"
    if reason:
        pytest.skip(reason)
    with clusters.running(tmp_path_factory.mktemp("slurm")) as cluster:
        yield cluster


@pytest.fixture
def another_cluster(cluster, tmp_path):
    """A second cluster beside that of the session, to be entered."""
    return clusters.running(tmp_path)


@pytest.fixture(scope="session")
def wait_until():
    """A function that waits for something to become true."""
    return clusters.wait_until


@pytest.fixture(scope="session")
def new_project(tmp_path_factory):
    """A function that makes a working folder, configured to ask for GPUs."""

    def make(name, **changes):
        return configure(workflow.Project(tmp_path_factory.mktemp(name)), **changes)

    return make


def configure(project, **changes):
    """Write a configuration whose jobs ask for a GPU, and use one where there is one."""
    execution = {"gpu": 1, **changes.pop("execution", {})}
    config = workflow.tiny_config(
        numerics={"device": "auto"}, methods=["fedavg"], execution=execution, **changes
    )
    (project.path / "config.yaml").write_text(yaml.safe_dump(config))
    return project


@pytest.fixture(scope="session")
def new_quickstart(tmp_path_factory):
    """A function that makes a folder with one seed of the quickstart, in segments and on GPUs."""

    def make(name):
        project = workflow.Project(tmp_path_factory.mktemp(name))
        config = yaml.safe_load((workflow.REPOSITORY / "config.yaml").read_text())
        config["experiments"]["quickstart"]["grid"]["seed"] = [0]
        config |= {"execution": {"granularity": "segment", "gpu": 1}}
        (project.path / "config.yaml").write_text(yaml.safe_dump(config))
        return project

    return make


@pytest.fixture
def reconfigure():
    """The function that changes a project's configuration."""
    return configure


@pytest.fixture(scope="session")
def submitter(cluster):
    """A function that opens a login session on the cluster in a project's folder."""
    return lambda project: Submitter(project, cluster)


@pytest.fixture(scope="session")
def copy_of(tmp_path_factory):
    """A function that copies a finished project, with its times and snakemake's notes."""

    def copy(project):
        path = tmp_path_factory.mktemp("copy")
        shutil.copytree(project.path, path, dirs_exist_ok=True)
        return workflow.Project(path)

    return copy
