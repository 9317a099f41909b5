"""The configuration, checked, and the small functions that rules share."""

import gc
import logging
import os
import shlex
import sys
from functools import cache
from itertools import filterfalse
from pathlib import Path

from fedstage.data.folder import default_folder
from fedstage.execution.client import start_early
from fedstage.execution.environment import prepare
from fedstage.execution.faults import explained
from fedstage.execution.requirements import check_device, check_weights
from fedstage.experiments.catalogue import find, load_catalogue, state_rounds, with_scales
from fedstage.experiments.catalogue import metrics_of, trained_runs
from fedstage.experiments.descriptions import claims_on, clients_of, dropping_of, files_of
from fedstage.experiments.descriptions import files_of_rounds, retention_of, validation_of
from fedstage.experiments.targets import FORMATS, asked_runs, cohorts_of, describe
from fedstage.experiments.targets import named_targets, results_of
from fedstage.plan import data_files, discriminators, generated, one_shot, one_shot_edges
from fedstage.plan import scores, training
from fedstage.plan.digests import as_json, canonical
from fedstage.plan.identity import is_closed_form_name, is_generating_name, is_stateful_name
from fedstage.plan.identity import partition_settings
from fedstage.plan.members import PATTERN as MEMBERS
from fedstage.plan.rounds import evaluated_rounds
from fedstage.plan.segment_rules import segment_rules
from fedstage.plan.participants import binding, delays, groups_drawn
from fedstage.plan.source import source_of, stage_fingerprint
from fedstage.settings.lines import re_estimates
from fedstage.storage.provenance import SUFFIX as RECORD
from fedstage.storage.records import LINES
from fedstage.storage.raw_contents import raw_digest
from fedstage.storage.seals import sealed
from fedstage.storage.yaml_files import load_yaml

# A chain of rounds is as deep a graph as it is long; Python's own limit allows some 400 rounds.
sys.setrecursionlimit(20000)
# On a full disk, what snakemake cannot write into its own log is no news, and would be a traceback.
logging.raiseExceptions = False
# Nor is there much to collect among the objects of a graph, where Python would look for it often.
gc.set_threshold(200_000, 50, 100)


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
# The folder of this workflow, also where another one uses it as a module.
WORKFLOW = Path(workflow.current_basedir).parent
CATALOGUE = explained(load_catalogue, config, WORKFLOW, ARGUMENTS)
NAMED = explained(named_targets, CATALOGUE, ARGUMENTS)  # snakemake quickstart
ARGUMENTS = with_scales(ARGUMENTS, CATALOGUE.experiments)
EXECUTION = CATALOGUE.config.execution
KEEP = CATALOGUE.config.keep
BY_PARTICIPANT = EXECUTION.granularity == "participant"

if CATALOGUE.config.data_folder:
    os.environ.update(FEDSTAGE_DATA=CATALOGUE.config.data_folder)
# In a container or a conda environment, `fedstage` is the command that is installed there.
if not workflow.deployment_settings.deployment_method:
    prepare(os.environ, WORKFLOW / "bin", EXECUTION)
    # Warm workers take as long to start as a plan to be made, so if jobs are to run here, now.
    if workflow.resource_settings.cores and not workflow.output_settings.dryrun:
        start_early()


wildcard_constraints:
    data="[^/]+",
    partition="[^/]+",
    plan="[^/]+",
    initial="[^/]+",
    folder="|".join(LINES),
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


def inputs_of(stage):
    """Return an input function: what a stage reads in a round and group."""
    return lambda wildcards: stage.job(*place(wildcards)).inputs


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


def initial_settings(wildcards):
    """Return the settings of initial weights; a file that they start from must be there."""
    settings = found("initial", wildcards.initial).settings
    made = Path(f"results/initial_models/{wildcards.initial}/group_0.safetensors")
    explained(check_weights, settings.model, default_folder(), made)
    return settings


def new_line(wildcards):
    """Return the settings of a line; of one that is new, this machine must have the device.

    Not where jobs go to other machines or into containers, nor for what has been trained already.
    """
    line = line_of(wildcards)
    made = Path("results", wildcards.folder, wildcards.line, "line.yaml").exists()
    here = workflow.is_main_process and workflow.resource_settings.nodes is None
    if here and not made and not workflow.deployment_settings.deployment_method:
        explained(check_device, line.numerics.device)
    return line


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


def description_file(wildcards):
    """Return where a description is; snakemake does not compare params that look at the output."""
    return "results/descriptions/{experiment}/{scale}.{what}.json".format(**wildcards)


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


def claims_of(wildcards):
    """Return the description of the claims on an experiment, if there are any."""
    if not claims_on(CATALOGUE, wildcards.experiment):
        return []
    return "results/descriptions/{experiment}/{scale}.claims.json".format(**wildcards)


def shown(path, caption, result):
    """Return an output that the report shows."""
    return report(
        path,
        caption=f"../report/{caption}.rst",
        category="{experiment}",
        labels={"result": result, "scale": "{scale}"},
    )


def drawn(name, caption, result):
    """Return the outputs of a figure: for the report and screens, for print, and its caption."""
    path = f"results/figures/{{experiment}}/{{scale}}_{name}"
    return [shown(f"{path}.png", caption, result), *(f"{path}.{kind}" for kind in FORMATS[1:])]


def files_of_target(target):
    """Return the files of a target: its results, and the metrics that they are made of.

    The metrics are named beside the tables made of them, so that deleting one makes it again.
    """
    metrics = [metrics_of(run) for run in trained_runs(CATALOGUE, target)]
    return [*metrics, *results_of(CATALOGUE, target)]
