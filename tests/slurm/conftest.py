"""A cluster for the session, and projects whose jobs go to it."""

import importlib.util
import os
import shutil
import subprocess
import sys
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
class Submitter:
    """A project, and a login session on the cluster from which snakemake submits its jobs."""

    project: Any
    cluster: Any
    wait_until = staticmethod(clusters.wait_until)

    @property
    def environment(self) -> dict[str, str]:
        own = self.cluster.environment
        return own | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{own['PATH']}"}

    def start(self, *arguments: str) -> "subprocess.Popen[bytes]":
        """Start snakemake with the profile, its output in a file."""
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

    def finish(self, process: "subprocess.Popen[bytes]") -> None:
        """Wait for a successful end."""
        try:
            process.wait(clusters.HANG_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
        assert process.wait() == 0, (self.project.path / "output.txt").read_text()

    def stage(self, job: Any) -> int | None:
        """Return the process of a stage in a job."""
        for pid in self.cluster.processes(SLURM_JOB_ID=job.id):
            with suppress(OSError):
                if b"bin/fedstage\0" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    return int(pid)
        return None


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
    """A function that makes a folder with one of the quickstart's methods, on GPUs.

    Each of its jobs imports snakemake anew: two clients give the least of them.
    """

    def make(name):
        project = workflow.Project(tmp_path_factory.mktemp(name))
        config = yaml.safe_load((workflow.REPOSITORY / "config.yaml").read_text())
        quickstart = config["experiments"]["quickstart"]
        quickstart["base"] |= {"clients": 2, "participants": 2}
        quickstart |= {"grid": {"method": ["fens"], "seed": [0]}, "results": ["table"]}
        config |= {"execution": {"gpu": 1}}
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
