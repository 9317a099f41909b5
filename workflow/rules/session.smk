"""What is done at the beginning and the end of a run, apart from its jobs."""

import atexit
import time

from snakemake.dag import DAG
from snakemake.logging import logger
from snakemake.scheduling.job_scheduler import JobScheduler

from fedstage.execution.terminal_log import faults
from fedstage.execution.executor import look_less_often, plan_faster
from fedstage.execution.requirements import missing_data
from fedstage.experiments.links import link_runs, linked
from fedstage.plan.runs import shared_work
from fedstage.experiments.targets import explain_no_table, explain_unknown, shown_results

STARTED = time.time()
FOLDER = Path.cwd()  # which Snakemake has left again at the end
plan_faster(DAG)
look_less_often(JobScheduler)


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


def check_raw_data():
    """End the run if raw data that its jobs are to read are not on this machine."""
    if not IS_PLAN or workflow.resource_settings.nodes is not None:
        return
    jobs = workflow.dag.needrun_jobs(exclude_finished=False)
    # Another workflow, of which this one is a module, may have a rule of this name.
    rules = ("dataset", "features", "partition")
    folders = {str(Path(job.output[0]).parent) for job in jobs if job.rule.name in rules}
    configs = [FOLDERS[one] for one in sorted(folders & FOLDERS.keys())]
    options = [one.data if isinstance(one, DataOption) else one.partition for one in configs]
    chosen = [getattr(one, "encoder", one) for one in options]
    place = default_folder()
    if line := missing_data(chosen, place and FOLDER / place):
        sys.exit(f"fedstage: {line}")


def tell_faults():
    """Print the faults of failed jobs once more, at the end: Snakemake has more to say first."""
    failed = [job for one in workflow.scheduler.failed for job in getattr(one, "jobs", [one])]
    logs = [(job.rule.name, Path(job.log[0]) if job.log else None) for job in failed]
    lines = faults(logs, STARTED)
    if lines and workflow.execution_settings.keep_going:
        asked_for = linked(shown_results(CATALOGUE, wanted()))
        hints = explain_no_table(CATALOGUE, asked_for, lambda file: (FOLDER / file).exists())
        lines = [*hints, *lines]
    if lines:
        atexit.register(print, "", *lines, sep="\n", file=sys.stderr)


def show_finished():
    """Print the tables of a call that has nothing to do, after which Snakemake calls no function."""
    if workflow.scheduler and not workflow.dryrun and not len(workflow.dag):
        print(*tables(), sep="\n", end="", file=sys.stderr)


def tables():
    """Return the targets' tables that there are, the paths of reports, and what sharing saves."""
    there = [path for path in shown_results(CATALOGUE, wanted()) if (FOLDER / path).exists()]
    named = [path for path in there if path.endswith(".md")]
    shown = [f"\n{path}\n\n{without_legend((FOLDER / path).read_text('utf-8'))}" for path in named]
    shown += [f"\nWith figures: {path}\n" for path in there if path not in named]
    targets = {"/".join(key): CATALOGUE.runs[key] for key in linked(there)}
    lines = {name: explained(shared_work, runs) for name, runs in targets.items()}
    return shown + [f"\n{name}: {line}\n" for name, line in lines.items() if line]


def without_legend(text):
    """Return a document's first table, with the lines above it."""
    lines = text.partition("\n## ")[0].rstrip().splitlines()
    return "\n".join(line for line in lines if not line.startswith("- ")).rstrip() + "\n"


# Not where another workflow uses this one as a module.
if workflow.is_main_process and workflow.modifier.base_snakefile is None:
    atexit.register(show_finished)
atexit.register(tell_unknown)
