"""A private SLURM of one node: munged, slurmctld and slurmd, on loopback, in one folder.

Needs root and Debian's packages (see PROGRAMS), but no systemd, no database and nothing in /etc.
The node has more CPUs and memory on paper than the machine, and two GPUs that are other devices:
SLURM hands them out, nothing opens them.
"""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol", "squeue")
NODE = "node1"
GPUS = ("/dev/null", "/dev/zero")  # a GPU is counted only if its file is a character device
KIND = "fake"
HANG_SECONDS = 1800  # only what hangs takes as long, however busy the machine

# Without accounting, squeue must remember finished jobs (MinJobAge). For cred_expire, by default
# 120 s, a job whose node has failed waits before it starts again. Jobs are not requeued unless they
# ask for it (JobRequeue). By process groups (pgid), the kill of a job reaches its batch script's
# children even when the script has gone.
SETTINGS = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0,bf_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SlurmdParameters=config_overrides
ReturnToService=1
MinJobAge=3600
KillWait=2
UnkillableStepTimeout=30
JobRequeue=0
GresTypes=gpu
NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 \
CPUs={cpus} RealMemory={memory} \
Gres=gpu:{kind}:{gpus}
PartitionName=main Nodes={node} Default=YES MaxTime=INFINITE State=UP
PartitionName=gpu Nodes={node} MaxTime=INFINITE State=UP
"""


@dataclass(frozen=True)
class Job:
    """A submission as the controller knows it, finished ones too."""

    id: int
    state: str
    name: str
    restarts: int
    partition: str
    memory: str
    gpus: str

    @property
    def rule(self) -> str:
        """The rule, or group of rules, in the name that snakemake's plugin gives."""
        return self.name.removeprefix("rule_").partition("_wildcards_")[0]


@dataclass(frozen=True)
class Cluster:
    """A running cluster."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """What a user's shell on the cluster has: its programs, its settings."""
        own = {
            "PATH": f"{self.folder}/bin{os.pathsep}{search_path()}",
            "SLURM_CONF": f"{self.folder}/slurm.conf",
        }
        return os.environ | own

    def call(self, *command: str) -> str:
        """Run one of SLURM's programs and return what it prints."""
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, timeout=HANG_SECONDS
        )
        assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"
        return done.stdout

    def jobs(self) -> list[Job]:
        """Return all jobs there have been, in the order of their submission."""
        fields = ["JobID", "State", "RestartCnt", "Partition", "MinMemory", "tres-per-job"]
        columns = "".join(f"{field}:|," for field in fields) + "Comment:200"
        lines = self.call("squeue", "--noheader", "--states=all", "--sort=i", "--Format", columns)
        return [parse_job(line) for line in lines.splitlines()]

    def processes(self, **variables: object) -> list[int]:
        """Return the processes of this cluster whose environment has these variables."""
        return processes_with(SLURM_CONF=f"{self.folder}/slurm.conf", **variables)

    def steps(self) -> list[int]:
        """Return the processes by which SLURM itself keeps watch over the steps of jobs."""
        return [process for process in self.processes() if name_of(process) == "slurmstepd"]


def parse_job(line: str) -> Job:
    """Read a line of squeue; snakemake's plugin writes a job's name into the comment."""
    number, state, restarts, *asked, name = (part.strip() for part in line.split("|"))
    partition, memory, gpus = asked
    return Job(int(number), state, name, int(restarts), partition, memory, gpus)


def search_path() -> str:
    """Return PATH with the folders of the daemons, which a user's may lack."""
    return os.pathsep.join([os.environ["PATH"], "/usr/sbin", "/sbin"])


def missing() -> str:
    """Return why no cluster can be started here, or an empty text."""
    absent = [name for name in PROGRAMS if shutil.which(name, path=search_path()) is None]
    if absent:
        return f"no SLURM: {', '.join(absent)} not installed"
    return "" if os.geteuid() == 0 else "the daemons of SLURM must be started by root"


@contextmanager
def running(folder: Path, *, cpus: int = 4, memory: int = 1_000_000) -> Iterator[Cluster]:
    """Start a cluster in an empty folder, and leave no process of it."""
    cluster = Cluster(folder)
    write_settings(cluster, cpus=cpus, memory=memory)
    with ExitStack() as daemons:
        daemons.callback(end_stray, cluster)
        daemons.enter_context(daemon(cluster, "munged", *munge_options(folder)))
        wait_until((folder / "munge.socket").exists, "munged listens")
        controller = daemons.enter_context(daemon(cluster, "slurmctld", "-D", "-c", "-i"))
        node = daemons.enter_context(daemon(cluster, "slurmd", "-D", "-N", NODE))
        wait_until(lambda: ready(cluster, controller, node), "the node is idle")
        daemons.callback(cancel_jobs, cluster)
        yield cluster


def write_settings(cluster: Cluster, *, cpus: int, memory: int) -> None:
    """Write what the daemons read."""
    folder = cluster.folder
    controller_port, node_port = free_ports(2)
    text = SETTINGS.format(
        folder=folder,
        host=socket.gethostname().partition(".")[0],
        node=NODE,
        cpus=cpus,
        memory=memory,
        kind=KIND,
        gpus=len(GPUS),
        controller_port=controller_port,
        node_port=node_port,
    )
    (folder / "slurm.conf").write_text(text)
    devices = "".join(f"NodeName={NODE} Name=gpu Type={KIND} File={device}\n" for device in GPUS)
    (folder / "gres.conf").write_text(f"AutoDetect=off\n{devices}")
    for name in ("state", "spool", "bin"):
        (folder / name).mkdir()
    (folder / "munge.key").write_bytes(os.urandom(128))
    (folder / "munge.key").chmod(0o600)
    wrap_srun(cluster)


def wrap_srun(cluster: Cluster) -> None:
    """Tell srun of the settings: inside a job, snakemake's plugin drops the variable for them."""
    program = cluster.folder / "bin/srun"
    real = shutil.which("srun", path=search_path())
    program.write_text(f'#!/bin/sh\nSLURM_CONF={cluster.folder}/slurm.conf exec {real} "$@"\n')
    program.chmod(0o755)


def munge_options(folder: Path) -> list[str]:
    """Return the options that keep munged to the folder, in the foreground."""
    return [
        "--foreground", "--force", f"--socket={folder}/munge.socket",
        f"--key-file={folder}/munge.key", f"--pid-file={folder}/munged.pid",
        f"--seed-file={folder}/munge.seed", f"--log-file={folder}/munged.log",
    ]  # fmt: skip


def free_ports(count: int) -> list[int]:
    """Return ports of the loopback interface that nothing listens on."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


@contextmanager
def daemon(cluster: Cluster, name: str, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a daemon as a child, in a session of its own so that Ctrl-C leaves it to us."""
    program = shutil.which(name, path=search_path())
    assert program is not None, "checked by missing()"
    with open(cluster.folder / f"{name}.out", "w") as output:
        process = subprocess.Popen(
            [program, *options],
            env=cluster.environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def ready(cluster: Cluster, *daemons: subprocess.Popen[bytes]) -> bool:
    """Whether the node takes jobs; a daemon that has ended is an error, with its output."""
    for process in daemons:
        assert process.poll() is None, "\n".join(
            path.read_text() for path in sorted(cluster.folder.glob("*.out"))
        )
    return node_state(cluster) == "idle"


def node_state(cluster: Cluster) -> str:
    """Return the node's state, or an empty text while the controller does not answer."""
    done = subprocess.run(
        ["sinfo", "--noheader", "--partition=main", "--format=%T"],
        env=cluster.environment, capture_output=True, text=True,
    )  # fmt: skip
    return done.stdout.strip()


def cancel_jobs(cluster: Cluster) -> None:
    """End all jobs while the daemons can still do it properly."""
    cluster.call("scancel", "--user=root")
    wait_until(lambda: not cluster.call("squeue", "--noheader"), "all jobs have ended")


def end_stray(cluster: Cluster) -> None:
    """Kill what outlived the daemons, such as processes that left the group of their job."""
    while stray := cluster.processes():
        for process in stray:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.05)


def processes_with(**variables: object) -> list[int]:
    """Return the processes whose environment has these variables."""
    wanted = {f"{name}={value}".encode() for name, value in variables.items()}
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                if wanted <= set((entry / "environ").read_bytes().split(b"\0")):
                    found.append(int(entry.name))
    return found


def name_of(process: int) -> str:
    """Return the name of a process's program, or an empty text when it has gone."""
    with suppress(OSError):
        return Path(f"/proc/{process}/comm").read_text().strip()
    return ""


def wait_until(condition: Callable[[], object], what: str) -> None:
    """Wait for something to become true."""
    end = time.monotonic() + HANG_SECONDS
    while not condition():
        assert time.monotonic() < end, f"not within {HANG_SECONDS} s: {what}"
        time.sleep(0.05)
