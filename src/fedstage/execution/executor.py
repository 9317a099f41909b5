"""How Snakemake runs jobs on this machine: stages in warm workers, others as it does by itself.

Here alone Snakemake's internals are replaced: planning with thousands of outputs, and when ready
jobs are looked at. `tests/unit/execution/test_internals.py` fails when Snakemake changes what is
relied upon for it.
"""

import atexit
import shlex
from collections import defaultdict
from collections.abc import Collection, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from snakemake.exceptions import SpawnedJobError
from snakemake.executors.local import Executor as LocalExecutor
from snakemake_interface_executor_plugins.settings import ExecutorSettingsBase

from fedstage.errors import FedstageError
from fedstage.execution.jobs import fail
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


# --- planning with thousands of outputs -----------------------------------------------------------


class IndexBySuffix:
    """The rules that make a file, looked up by the end of its name.

    Snakemake's own index tries all outputs with the same beginning. Thousands of outputs of
    segments begin with ``results/training/``.
    """

    def __init__(self, rules: Collection[Any]) -> None:
        self._ending: dict[str, list[tuple[Any, Any]]] = defaultdict(list)
        for rule in rules:
            for product in rule.products():
                self._ending[str(product.constant_suffix())].append((rule, product))
        self._lengths = {len(suffix) for suffix in self._ending}

    def match_producers(self, targetfile: str) -> set[Any]:
        """Return the rules that make a file."""
        ends = {targetfile[max(len(targetfile) - length, 0) :] for length in self._lengths}
        found = (pair for end in ends for pair in self._ending.get(end, ()))
        return {rule for rule, product in found if product.match(targetfile)}


def plan_faster(graph: Any) -> None:
    """Replace what takes most of the time with the thousands of outputs that segments have.

    Besides the index, that is a check that compares all outputs as paths. It looks for a file below
    another one, which must then be a directory.

    Parameters
    ----------
    graph : class
        Snakemake's class of graphs.
    """
    check = graph.check_directory_outputs

    def index(dag: Any) -> None:
        dag.output_index = IndexBySuffix(dag.rules)

    def checked(dag: Any) -> None:
        if any(file.is_directory for rule in dag.rules for file in rule.output):
            check(dag)

    graph.update_output_index = index
    graph.check_directory_outputs = checked


# --- when ready jobs are looked at ----------------------------------------------------------------


def look_less_often(scheduler: Any) -> None:
    """Let ready jobs be looked at again after a time only if a limit on jobs in it was reached.

    There is a limit by default. Snakemake looks again a second after each look, and looks when a
    job has finished: a hundred jobs later it does nothing else, for a quarter of a core and more.

    Parameters
    ----------
    scheduler : class
        Snakemake's class of schedulers.
    """
    look_again = scheduler._schedule_reevalutation

    def if_limited(own: Any, delay: int) -> None:
        limit = own.job_rate_limiter
        reached = limit is None or delay != limit.timespan or not limit.get_free_jobs()
        if reached or not own.running:  # then no job that finishes would bring about another look
            look_again(own, delay)

    scheduler._schedule_reevalutation = if_limited
