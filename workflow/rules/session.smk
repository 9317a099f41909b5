"""What is done at the beginning and the end of a run, apart from its jobs."""

import atexit
import time
from functools import partial

from snakemake.dag import DAG
from snakemake.logging import logger

from fedstage.execution.faults import count_failed, faults
from fedstage.execution.internals import lift_rate_limit, note_interrupts, own_locks
from fedstage.execution.internals import plan_faster
from fedstage.execution.internals import stop_at_bad_data, stop_in_a_thread, was_interrupted
from fedstage.execution.requirements import missing_data
from fedstage.execution.runs import note_run, release
from fedstage.experiments.disk_space import describe_size
from fedstage.experiments.doubtful import doubtful
from fedstage.experiments.links import link_runs, linked, names_of_folders
from fedstage.experiments.shown import shown_results, shown_runs
from fedstage.experiments.targets import explain_unknown
from fedstage.experiments.unread import unread_settings
from fedstage.experiments.unused_methods import unused_methods

STARTED = time.time()
FOLDER = Path.cwd()  # which Snakemake has left again at the end
CTRL_C = note_interrupts()
plan_faster(DAG)


def wanted():
    """Return the files and rules that the command line names as targets."""
    return workflow.dag_settings.targets if workflow.dag_settings else ()


def has_rule(target):
    """Return whether a rule makes files of this form."""
    return any(rule.is_producer(target) for rule in workflow.rules)


def tell_unknown():
    """Print a line on a target that there is not, below what Snakemake says of it."""
    unknown = [one for one in wanted() if not workflow.is_rule(one) and not Path(one).exists()]
    if line := explain_unknown(CATALOGUE, unknown, has_rule):
        print(f"\nfedstage: {line}", file=sys.stderr)


def tell_doubtful():
    """Print a line on each setting that no run reads, doubtful runs, and unused method."""
    unread = unread_settings(CATALOGUE.sources, CATALOGUE.experiments)
    unused = unused_methods(CATALOGUE.sources, CATALOGUE.experiments)
    for line in [*unread, *unused, *doubtful(CATALOGUE.runs)]:
        print(f"fedstage: {line}", file=sys.stderr)


def missing():
    """Return a line on data sets that jobs of this machine are to read and that are not there."""
    if not IS_PLAN or workflow.resource_settings.nodes is not None:
        return None
    jobs = workflow.dag.needrun_jobs(exclude_finished=False)
    # Another workflow, of which this one is a module, may have a rule of this name.
    folders = {str(Path(job.output[0]).parent) for job in jobs if job.rule.name == "dataset"}
    data_sets = [CATALOGUE.folders[one] for one in sorted(folders & CATALOGUE.folders.keys())]
    place = default_folder()
    return missing_data(data_sets, place and FOLDER / place)


def tell_missing_data():
    """Print what would stop a run that was only planned: experiments are planned without data."""
    if workflow.scheduler and workflow.dryrun and (line := missing()):
        print(f"fedstage: would stop before the first job: {line}", file=sys.stderr)


def tell_faults():
    """Print the faults of failed jobs once more, at the end: Snakemake has more to say first."""
    failed = [job for one in workflow.scheduler.failed for job in getattr(one, "jobs", [one])]
    logs = [(job.rule.name, Path(job.log[0]) if job.log else None) for job in failed]
    interrupted = was_interrupted(workflow.scheduler, CTRL_C)
    if interrupted:
        logger.info("", extra={"failed_before_interrupt": count_failed(logs, STARTED)})
    if lines := faults(logs, STARTED, interrupted):
        atexit.register(print, "", *lines, sep="\n", file=sys.stderr)


def show_finished():
    """Print the tables of a call that has nothing to do, after which Snakemake calls no function."""
    if workflow.scheduler and not workflow.dryrun and not len(workflow.dag):
        print(*tables(), sep="\n", end="", file=sys.stderr)


def tables():
    """Return the targets' tables that there are, each below its path, and the paths of reports."""
    there = [path for path in shown_results(CATALOGUE, wanted()) if (FOLDER / path).exists()]
    named = [path for path in there if path.endswith(".md")]
    shown = [f"\n{path}\n\n{(FOLDER / path).read_text('utf-8')}" for path in named]
    return shown + [f"\nWith figures: {path}\n" for path in there if path not in named]


if workflow.is_main_process:  # in a dry run as well, and not in each job
    tell_doubtful()
    if line := release(FOLDER):
        print(f"fedstage: {line}", file=sys.stderr)
    atexit.register(tell_missing_data)
    if workflow.modifier.is_main_snakefile():
        atexit.register(show_finished)
atexit.register(tell_unknown)
