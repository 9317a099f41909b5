"""What is done at the beginning and the end of a run, beside its jobs."""

import atexit
import dataclasses
import re
import signal
import time
from _thread import start_new_thread

from snakemake.cli import parse_size_in_bytes
from snakemake.io import _IOFile
from snakemake.logging import logger
from snakemake.settings.enums import Quietness, RerunTrigger

from fedstage.execution.faults import faults
from fedstage.experiments.disk_space import describe_size
from fedstage.experiments.links import link_runs, linked
from fedstage.experiments.shown import shown_runs, shown_tables
from fedstage.experiments.targets import explain_unknown
from fedstage.experiments.unread import unread_settings

STARTED = time.time()

# Options of workflow/profiles/default that are defaults: where snakemake keeps each, and how it
# reads it.
GOOD_DEFAULTS = {
    "rerun-triggers": ("dag_settings", "rerun_triggers", RerunTrigger.parse_choices_set),
    "rerun-incomplete": ("dag_settings", "force_incomplete", bool),
    "max-checksum-file-size": ("dag_settings", "max_checksum_file_size", parse_size_in_bytes),
    "keep-going": ("execution_settings", "keep_going", bool),
    "scheduler-subsample": ("scheduling_settings", "subsample", int),
}


def take_good_defaults():
    """Let the options of workflow/profiles/default be the defaults.

    Snakemake looks for a default profile beside the Snakefile only, which is at the root. What the
    command line or a profile says stays, and with `--workflow-profile none` all of Snakemake's own.
    It keeps its settings only after it has read the Snakefile, so they change when it makes a graph.
    """
    if (
        re.search(r"--workflow-profile[ =]none\b", ARGUMENTS)
        or not workflow.modifier.is_main_snakefile()
    ):
        return
    options, prepare = load_yaml(WORKFLOW / "profiles/default/config.yaml"), workflow._prepare_dag

    def prepared(*arguments, **named):
        for option, (kind, name, parse) in GOOD_DEFAULTS.items():
            settings = getattr(workflow, kind)  # None where the command needs none
            if settings is not None and is_default(settings, name, option):
                setattr(settings, name, parse(options[option]))
        return prepare(*arguments, **named)

    workflow._prepare_dag = prepared


def is_default(settings, name, option):
    """Whether neither the command line nor a profile says what a setting of snakemake is."""
    (field,) = [one for one in dataclasses.fields(settings) if one.name == name]
    return f"--{option}" not in ARGUMENTS and getattr(settings, name) == field.default


def stop_at_bad_data():
    """Start no more jobs once data cannot be used, although others are kept going.

    What depends on no bad data could train for days before somebody reads of it.
    """
    scheduler, handle = workflow.scheduler, workflow.scheduler._handle_error

    def handled(job, *arguments, **named):
        handle(job, *arguments, **named)
        rules = {one.rule.name for one in getattr(job, "jobs", [job])}
        if job in scheduler.failed and rules & {"dataset", "partition", "core", "initial_model"}:
            scheduler.keepgoing = False

    if "--keep-going" not in ARGUMENTS:
        scheduler._handle_error = handled


def hide_reasons():
    """Keep the reasons of jobs, lists of up to hundreds of files, to dry runs and the log file."""
    for handler in terminals():
        handler.formatter.quiet = {*handler.formatter.quiet, Quietness.REASON}


def terminals():
    """Return the handlers that print what snakemake logs."""
    return [one for one in logger.handlers if one.name == "DefaultStreamHandler"]


def shorten_dry_runs():
    """Let a dry run print how many jobs of each rule there are and why, and with -p each job."""
    output = workflow.output_settings
    more = output.printshellcmds or output.verbose or output.debug_dag or output.quiet
    if not output.dryrun or more or not workflow.modifier.is_main_snakefile():
        return
    for handler in terminals():
        for one in handler.filters:
            one.quiet = {*one.quiet, Quietness.RULES}
    atexit.register(tell_more)


def tell_more():
    """Print how a dry run lists its jobs, if there are any."""
    if workflow._dag is not None and any(workflow.dag.needrun_jobs(exclude_finished=False)):
        print("fedstage: snakemake -n -p lists every job, with its reason", file=sys.stderr)


def lift_rate_limit():
    """Drop the limit of 100 jobs a second that snakemake has by default, not one of a user.

    With a limit, the scheduler looks at all waiting jobs again a second after each time that it did
    so, for each job that has finished: after n jobs n times a second, and soon all the time.
    """
    limit = workflow.scheduling_settings.max_jobs_per_timespan
    if (limit.max_jobs, limit.timespan) == (100, 1):
        workflow.scheduler.job_rate_limiter = None


def schedule_greedily():
    """Take the greedy scheduler, unless the command line names one.

    The default one solves an integer program for each choice of jobs, in the scheduler's lock.
    """
    if workflow.scheduling_settings.scheduler == "ilp" and "--scheduler" not in ARGUMENTS:
        workflow.scheduler._job_selector = workflow.scheduler.job_selector_greedy


def stop_in_a_thread():
    """Let a thread of its own act on SIGTERM.

    Snakemake's handler waits for the scheduler's lock. It runs in the main thread, which may hold
    the lock at this moment, and would then wait for ever.
    """
    stop = workflow.scheduler.exit_gracefully
    signal.signal(signal.SIGTERM, lambda *_: start_new_thread(stop, ()))


def hash_inputs_once():
    """Remember the checksum of an input, as long as its time and size stay.

    Snakemake computes the checksums of all inputs of a job anew for each of its outputs.
    """
    checksum, known = _IOFile.checksum, {}

    async def remembered(file, threshold=None, force=False, algorithm=None):
        if not await file.is_checksum_eligible(threshold):
            return await checksum(file, threshold, force, algorithm)
        status = os.stat(file.file)
        key = (file.file, status.st_mtime_ns, status.st_size, algorithm)
        if key not in known:
            known[key] = await checksum(file, threshold, force, algorithm)
        return known[key]

    _IOFile.checksum = remembered


def wanted():
    """Return the files and rules that the command line names as targets."""
    return workflow.dag_settings.targets or ()


def tell_unknown():
    """Print a line on a target that there is not, below what Snakemake says of it."""
    settings = workflow.dag_settings
    asked = settings.targets if settings else ()
    unknown = [one for one in asked if not workflow.is_rule(one) and not Path(one).exists()]
    if line := explain_unknown(CATALOGUE, unknown):
        print(f"\nfedstage: {line}", file=sys.stderr)


def tell_unread():
    """Print a line on each setting of an experiment that no run reads."""
    for line in unread_settings(CATALOGUE.sources, CATALOGUE.experiments):
        print(f"fedstage: {line}", file=sys.stderr)


def show_size():
    """Print what the targets take on disk."""
    print(describe_size(CATALOGUE, shown_runs(CATALOGUE, wanted())), file=sys.stderr)


def tell_faults():
    """Print the faults of failed jobs once more, at the end: Snakemake has more to say first."""
    failed = [job for one in workflow.scheduler.failed for job in getattr(one, "jobs", [one])]
    logs = [(job.rule.name, Path(job.log[0]) if job.log else None) for job in failed]
    lines = faults(logs, STARTED)
    if lines:
        atexit.register(print, "", *lines, sep="\n", file=sys.stderr)


def show_tables():
    """Print the targets' tables at the end of a run."""
    for path in shown_tables(CATALOGUE, wanted()):
        if Path(path).exists():
            print(f"\n{path}\n\n{Path(path).read_text('utf-8')}", file=sys.stderr)


def link_by_method():
    """Make the links to the targets' runs, by method and seed, at the end of a run."""
    explained(link_runs, CATALOGUE, linked(shown_tables(CATALOGUE, wanted())), Path())


take_good_defaults()
shorten_dry_runs()
if workflow.is_main_process:  # in a dry run as well, and not in each job
    tell_unread()
atexit.register(tell_unknown)
