"""The configuration, checked, and the small functions that rules share."""

import os
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.logging import logger
from snakemake.settings.enums import Quietness

from fedstage.plan import artefacts, members, segments
from fedstage.experiments.targets import asked_runs, cohorts_of
from fedstage.experiments.catalogue import claims_on, describe_runs, find
from fedstage.experiments.catalogue import load_catalogue, metrics_of, split_target, state_rounds
from fedstage.experiments.catalogue import trained_runs
from fedstage.experiments.communication import describe_communication, files_of, tables_read
from fedstage.experiments.communication import validation_of
from fedstage.settings.data import HeldOut
from fedstage.settings.lines import re_estimates
from fedstage.results.definitions import define
from fedstage.errors import FedstageError
from fedstage.experiments.disk_space import describe_size
from fedstage.plan.evaluated import parse_evaluated
from fedstage.plan.source import module_of, source_of, stage_fingerprint
from fedstage.experiments.forgetting import forgets, traces_of
from fedstage.plan.sharing import as_json, binding, canonical, is_stateful_name, line_id
from fedstage.plan.sharing import local_line, members
from fedstage.plan.sharing import partition_settings
from fedstage.execution.environment import prepare

# A chain of rounds is as deep a graph as it is long; Python's own limit allows some 400 rounds.
sys.setrecursionlimit(20000)

try:
    CATALOGUE = load_catalogue(config, Path(workflow.basedir) / "workflow")
except FedstageError as error:
    raise WorkflowError(str(error)) from None

# In a container or a conda environment, `fedstage` is the command that is installed there.
if not workflow.deployment_settings.deployment_method:
    prepare(os.environ, Path(workflow.basedir) / "workflow/bin", CATALOGUE.config.execution)
if CATALOGUE.config.data_folder:
    os.environ.update(FEDSTAGE_DATA=CATALOGUE.config.data_folder)

# Round state is temporary, except in the rounds from which a run may go on.
KEPT_STATE = "|".join(f"{round:04d}" for round in state_rounds(CATALOGUE))
STATEFUL_LINE = is_stateful_name()
ROUND = "results/training/{line}/round_{round}/group_{group}"

# Logits of public images are a segment's business where training is.
GRANULARITY = CATALOGUE.config.execution.granularity
CLIENTS_PER_JOB = CATALOGUE.config.execution.clients_per_job
IMAGES = "[^/]+" if GRANULARITY == "participant" else "test|test_own|validation"

# What is known when the Snakefile is parsed, as a file. `printf` is a part of the shell: the command
# may be longer than a program's argument may be, and no other snakemake is started, as for `run`.
WRITE = "printf %s {params.content:q} > {output} 2> {log}"


wildcard_constraints:
    data="[^/]+",
    partition="[^/]+",
    plan="[^/]+",
    initial="[^/]+",
    line="[^/]+",
    round=r"\d{4}",
    group=r"\d+",
    slot=r"\d+",
    members=members.PATTERN,
    who=r"client_\d+|pooled",
    precision="fp32|int8-[0-9a-f]{10}",
    role="test|test_own|validation",
    choice="[^/]+",
    experiment="[^/]+",
    scale=r"[^/.]+",


def found(kind, wildcards, name):
    """Return what a wildcard's value stands for, or end with one line."""
    try:
        return find(getattr(CATALOGUE, kind), wildcards[name], kind)
    except FedstageError as error:
        raise WorkflowError(str(error)) from None


def line_of(wildcards):
    return found("lines", wildcards, "line")


def local_line_of(wildcards):
    return found("local_lines", wildcards, "line")


def asked_line_of(wildcards):
    """Return the line of models that are asked in a precision, with its quantisation."""
    try:
        name = "{}/{}".format(wildcards.line, wildcards.precision)
        return find(CATALOGUE.precisions, name, "models")
    except FedstageError as error:
        raise WorkflowError(str(error)) from None


def quantisation_of(line):
    """Return how models are quantised as JSON, or nothing where they are not."""
    how = line.quantisation
    return "" if how.name == "none" else as_json(canonical(how))


def binding_of(line):
    """Return which clients may be which slot as JSON, or nothing where each may be any."""
    bound = binding(line)
    return "" if bound is None else as_json(canonical(bound))


def aggregator_of(wildcards):
    return found("aggregators", wildcards, "line")


def student_of(wildcards):
    return found("students", wildcards, "line")


def gpus(line):
    """Return how many GPUs a job of this line asks the scheduler for."""
    device = line.numerics.device
    return CATALOGUE.config.execution.gpu if device == "auto" else int(device.startswith("cuda"))


def runs_of(target):
    """Return the runs that are trained for a target such as quickstart or fedsdd_table2/mini."""
    return trained_runs(CATALOGUE, target)


def results_of(target):
    """Return the files that a target, such as quickstart or fedsdd_table2/mini, stands for."""
    experiment, scale = split_target(target)
    formats = ("csv", "parquet", "md", "html")
    tables = [f"results/tables/{experiment}/{scale}.{kind}" for kind in (*formats, "tex")]
    drawn = ["accuracy", "partition"]
    if (experiment, scale) in CATALOGUE.published:
        drawn.append("published")
    if CATALOGUE.experiments[experiment].table.over:
        drawn.append("over")
    figures = [f"results/figures/{experiment}/{scale}_{figure}.png" for figure in drawn]
    if forgets(CATALOGUE, experiment, scale):
        tables += [f"results/forgetting/{experiment}/{scale}.{kind}" for kind in ("md", "csv")]
    computed = {
        result: [f"results/{result}/{experiment}/{scale}.{kind}" for kind in ("md", "csv")]
        for result in ("properties", "simulation", "round_times")
    }
    sums = [f"results/communication/{experiment}/{scale}.{kind}" for kind in formats]
    sums.append(f"results/figures/{experiment}/{scale}_communication.png")
    if claims_on(CATALOGUE, experiment):
        claims = [f"results/claims/{experiment}/{scale}.{kind}" for kind in formats]
        tables += claims
        sums += claims
        computed["round_times"] += claims
    computed["simulation"].append(f"results/figures/{experiment}/{scale}_schedule.png")
    every = {"table": tables, "figures": figures, "communication": sums} | computed
    wanted = CATALOGUE.experiments[experiment].results
    return list(dict.fromkeys(path for result in wanted for path in every[result]))


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


def show_size():
    """Print what the targets take on disk."""
    print(describe_size(CATALOGUE, CATALOGUE.config.targets), file=sys.stderr)


def show_tables():
    """Print the targets' tables at the end of a run."""
    for target in CATALOGUE.config.targets:
        for path in results_of(target):
            if path.endswith(".md") and Path(path).exists():
                print(f"\n{path}\n\n{Path(path).read_text()}", file=sys.stderr)
