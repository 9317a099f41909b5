"""How Snakemake runs jobs on this machine: stages in warm workers, others as it does by itself."""

import atexit
import shlex
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from snakemake.exceptions import SpawnedJobError
from snakemake.executors.local import Executor as LocalExecutor
from snakemake_interface_executor_plugins.settings import ExecutorSettingsBase

from fedstage.errors import FedstageError
from fedstage.execution.cli import fail
from fedstage.execution.pool import Pool
from fedstage.settings.config_file import Execution


class Chosen:
    """Whether a call of snakemake has chosen this executor, and the pool that it then has."""

    executor = False
    pool: Pool | None = None


def prepare(execution: Execution) -> None:
    """Start the pool while the graph is built, which takes as long, if jobs are to run in it."""
    if Chosen.executor:
        Chosen.pool = Pool(execution)
        Chosen.pool.start()
        atexit.register(Chosen.pool.stop)  # where there is nothing to do, or no plan


@dataclass
class ExecutorSettings(ExecutorSettingsBase):  # type: ignore[misc]
    """No settings; Snakemake makes them before it reads the Snakefile, if jobs are to run here."""

    def __post_init__(self) -> None:
        Chosen.executor = True


class Executor(LocalExecutor):  # type: ignore[misc]
    """Snakemake's own executor, but for stages."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._pool = Chosen.pool or Pool(Execution())

    def run_single_job(self, job: Any) -> Any:
        """Start a job; one whose outputs can stay as they are has finished already."""
        arguments = stage_arguments(job.shellcmd)
        if not arguments or self.workflow.deployment_settings.deployment_method:
            return super().run_single_job(job)
        if self.workflow.async_run(has_same_inputs(self.workflow, job)):
            self.logger.info(f"The inputs of job {job.jobid} are as before: its outputs are kept.")
            kept: Future[None] = Future()
            kept.set_result(None)  # Snakemake then touches the outputs, as of any job
            return kept
        self.workflow.async_run(job.prepare())
        return self.pool.submit(self.cached_or_run, job, self._run, arguments, job.log)

    def _run(self, arguments: Sequence[str], logs: Sequence[str]) -> None:
        """Run a stage in a worker; an error has been printed and logged when this raises."""
        code = 1
        try:
            code = self._pool.run(arguments)
        except FedstageError as error:
            record = Path(logs[0]) if logs else None
            fail(
                record, shlex.join(["fedstage", *arguments]), f"fedstage {arguments[1]}: {error}\n"
            )
        if code:
            raise SpawnedJobError

    def shutdown(self) -> None:
        """End the workers, once all jobs have."""
        super().shutdown()
        self._pool.stop()

    def cancel(self) -> None:
        """End the workers, and with them their jobs."""
        self._pool.stop()
        super().cancel()


def stage_arguments(command: str | None) -> list[str]:
    """Return the arguments of a stage's command, none if a job has another one."""
    if not command or not command.startswith("fedstage "):
        return []
    _, *arguments = shlex.split(command)
    return arguments if arguments[:1] == ["run"] else []


async def has_same_inputs(workflow: Any, job: Any) -> bool:
    """Whether a job is due only because its inputs were made again, with the bytes of before.

    Snakemake has compared nothing else of such a job when it planned the run, so it is done here.
    """
    dag, noted = workflow.dag, workflow.persistence
    if list(dag.reason(job).get_names()) != ["input files updated by another job"]:
        return False
    if job.rule in dag.forcerules or not dag.forcefiles.isdisjoint(job.output):
        return False
    for output in job.output:
        if output.is_storage or not await output.exists():
            return False
    if noted.params_changed(job) or any(noted.input_changed(job)) or any(noted.code_changed(job)):
        return False
    for file in job.input:
        recorded = noted.input_checksums(job, file)
        if len(recorded) != 1 or not await file.is_same_checksum(
            recorded.pop(), dag.max_checksum_file_size
        ):
            return False
    return True
