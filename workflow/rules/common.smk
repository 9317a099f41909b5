"""The configuration, checked, and the small functions that rules share."""

import gc
import logging
import os
import shlex
import signal
import sys
from _thread import start_new_thread
from functools import cache
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.io import _IOFile
from snakemake.logging import logger
from snakemake.settings.enums import Quietness

from fedstage.data.folder import default_folder
from fedstage.errors import FedstageError
from fedstage.execution.client import start_early
from fedstage.execution.environment import prepare
from fedstage.experiments.catalogue import find, load_catalogue, state_rounds
from fedstage.experiments.catalogue import metrics_of, trained_runs
from fedstage.experiments.descriptions import clients_of, dropping_of, files_of
from fedstage.experiments.descriptions import files_of_rounds, retention_of, validation_of
from fedstage.experiments.disk_space import describe_size
from fedstage.experiments.shown import shown_runs, shown_tables
from fedstage.experiments.targets import asked_runs, cohorts_of, describe, results_of
from fedstage.plan import (
    artefacts,
    data_files,
    edges,
    generator_files,
    one_shot_edges,
    segment_files,
)
from fedstage.plan.digests import as_json, canonical
from fedstage.plan.identity import is_stateful_name, line_id, partition_settings
from fedstage.plan.members import PATTERN as MEMBERS
from fedstage.plan.rounds import evaluated_rounds
from fedstage.plan.segment_rules import segment_rules
from fedstage.plan.participants import binding, delays, groups_drawn
from fedstage.plan.source import source_of, stage_fingerprint
from fedstage.settings.lines import re_estimates
from fedstage.storage.provenance import SUFFIX as RECORD
from fedstage.storage.raw_contents import raw_digest
from fedstage.storage.yaml_files import load_yaml

# A chain of rounds is as deep a graph as it is long; Python's own limit allows some 400 rounds.
sys.setrecursionlimit(20000)
# On a full disk, what snakemake cannot write into its own log is no news, and would be a traceback.
logging.raiseExceptions = False
# Nor is there much to collect among the objects of a graph, where Python would look for it often.
gc.set_threshold(200_000, 50, 100)


def explained(function, *arguments):
    """Return what a function returns, or end with the one line of its error."""
    try:
        return function(*arguments)
    except FedstageError as error:
        raise WorkflowError(str(error)) from None


# What a command line names determines which experiments are read and how segments are cut. So jobs,
# on whatever machine, see the arguments of the command that started them.
if workflow.is_main_process:
    os.environ["FEDSTAGE_ARGUMENTS"] = shlex.join(sys.argv[1:])


envvars:
    "FEDSTAGE_ARGUMENTS",


# Snakemake takes the last of several keys of one name.
for path in workflow.configfiles:
    explained(load_yaml, Path(path))

ARGUMENTS = os.environ["FEDSTAGE_ARGUMENTS"]
CATALOGUE = explained(load_catalogue, config, Path(workflow.basedir) / "workflow", ARGUMENTS)
EXECUTION = CATALOGUE.config.execution
KEEP = CATALOGUE.config.keep
BY_PARTICIPANT = EXECUTION.granularity == "participant"

if CATALOGUE.config.data_folder:
    os.environ.update(FEDSTAGE_DATA=CATALOGUE.config.data_folder)
# In a container or a conda environment, `fedstage` is the command that is installed there.
if not workflow.deployment_settings.deployment_method:
    prepare(os.environ, Path(workflow.basedir) / "workflow/bin", EXECUTION)
    # Warm workers take as long to start as a plan to be made, so if jobs are to run here, now.
    if workflow.resource_settings.cores and not workflow.output_settings.dryrun:
        start_early()


wildcard_constraints:
    data="[^/]+",
    partition="[^/]+",
    plan="[^/]+",
    initial="[^/]+",
    folder="training|local_models|aggregators|distilled_models|generators|generated|synthesised",
    line="[^/]+",
    round=r"\d{4}",
    group=r"\d+",
    slot=r"\d+",
    members=MEMBERS,
    who=r"client_\d+|pooled|core",
    precision="fp32|int8-[0-9a-f]{10}",
    role="test|test_own|validation",
    choice="[^/]+",
    experiment="[^/]+",
    scale=r"[^/.]+",


# --- what names of folders stand for --------------------------------------------------------------


def found(kind, name):
    return explained(find, getattr(CATALOGUE, kind), name, kind)


def line_of(wildcards):
    """Return the line of a folder of trained models or generated images below results."""
    return found("lines", wildcards.line)


def precise_line(wildcards):
    """Return the line of local models, with the quantisation in which they are used."""
    return found("precisions", f"{wildcards.line}/{wildcards.precision}")


def place(wildcards):
    """Return a line, a round and a group."""
    return line_of(wildcards), int(wildcards.round), int(wildcards.group)


def client_of(wildcards):
    """Return the number of the client that trains alone, None for pooled data and the core."""
    who = wildcards.who
    return int(who.removeprefix("client_")) if who.startswith("client_") else None


# --- resources and params -------------------------------------------------------------------------


def gpus_of(line):
    """Return how many GPUs a job of this line asks the scheduler for."""
    device = line.numerics.device
    return EXECUTION.gpu if device == "auto" else int(device.startswith("cuda"))


def threads(wildcards):
    return line_of(wildcards).numerics.threads


def gpus(wildcards):
    return gpus_of(line_of(wildcards))


def source(stage):
    """Return a param, the fingerprint of the source that makes a file of a line."""
    return lambda wildcards: source_of(line_of(wildcards), stage)


def as_option(settings):
    """Return settings as JSON, or nothing where there are none."""
    return "" if settings is None else as_json(canonical(settings))


def quantisation(wildcards):
    how = precise_line(wildcards).quantisation
    return as_option(None if how.name == "none" else how)


def in_order(line):
    """Return the order in which clients take part, or nothing where they are drawn."""
    return line.participation if line.participation == "in_turn" else ""


def raw(name):
    """Return the digest of the raw files of a data set.

    Snakemake compares params as a set. A data set without raw files repeats its settings there, so
    that its results of before this param stay.
    """
    data, record = found("data", name), Path(f"results/logs/dataset/{name}{RECORD}")
    return explained(raw_digest, data, default_folder(), record) or as_option(data)


# --- inputs and outputs of results ----------------------------------------------------------------


def of_runs(*keys):
    """Return an input function: files of each run of the experiment, each named once."""

    def files(wildcards):
        runs = described(wildcards, "runs")["runs"]
        return list(dict.fromkeys(run[key] for key in keys for run in runs if key in run))

    return files


def described(wildcards, what):
    """Return the description of an experiment at a scale: its runs, claims, or traces."""
    return description(wildcards.experiment, wildcards.scale, what)


@cache  # every input function of every result looks at the runs
def description(experiment, scale, what):
    return explained(describe, CATALOGUE, experiment, scale, what)


def measurements(wildcards):
    """Return tables of runs beside metrics: seconds, bytes, forgetting, if these are measured."""
    wanted = CATALOGUE.experiments[wildcards.experiment].results
    kinds = [kind for kind in ("round_times", "communication", "retention") if kind in wanted]
    return [
        "results/{}/{experiment}/{scale}.runs.parquet".format(kind, **wildcards) for kind in kinds
    ]


def timed_metrics(wildcards):
    """Return the metrics of runs whose jobs are measured, each by itself."""
    if not BY_PARTICIPANT or EXECUTION.clients_per_job != 1:
        name = f"round_times of {wildcards.experiment}/{wildcards.scale}"
        raise WorkflowError(
            f"{name}: execution.granularity = {EXECUTION.granularity!r}, clients_per_job = "
            f"{EXECUTION.clients_per_job!r}: must be 'participant' and 1, so that each job measures "
            "itself"
        )
    return of_runs("metrics")(wildcards)


def shown(path, caption, result):
    """Return an output that the report shows."""
    return report(
        path,
        caption=f"../report/{caption}.rst",
        category="{experiment}",
        labels={"result": result, "scale": "{scale}"},
    )


# --- what is shown --------------------------------------------------------------------------------


def hide_reasons():
    """Keep the reasons of jobs, lists of up to hundreds of files, to dry runs and the log file."""
    for handler in logger.handlers:
        if handler.name == "DefaultStreamHandler":
            handler.formatter.quiet = {*handler.formatter.quiet, Quietness.REASON}


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


def show_size():
    """Print what the targets take on disk."""
    print(describe_size(CATALOGUE, shown_runs(CATALOGUE, wanted())), file=sys.stderr)


def show_tables():
    """Print the targets' tables at the end of a run."""
    for path in shown_tables(CATALOGUE, wanted()):
        if Path(path).exists():
            print(f"\n{path}\n\n{Path(path).read_text('utf-8')}", file=sys.stderr)
