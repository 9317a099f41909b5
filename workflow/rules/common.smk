"""The configuration, checked, and the small functions that rules share."""

import gc
import logging
import os
import shlex
import sys
from functools import cache
from itertools import chain, filterfalse
from pathlib import Path

from fedstage.data.folder import default_folder
from fedstage.execution.client import start_early
from fedstage.execution.environment import prepare
from fedstage.execution.faults import explained
from fedstage.execution.imported import PLANNED, last_change
from fedstage.execution.requirements import check_device, check_models, check_packages
from fedstage.execution.requirements import check_weights
from fedstage.experiments.catalogue import find, load_catalogue, with_scales
from fedstage.experiments.catalogue import metrics_of, trained_runs
from fedstage.experiments.descriptions import claims_on, files_of, files_of_rounds
from fedstage.experiments.targets import asked_runs, describe
from fedstage.experiments.targets import last_states, named_targets, reported, results_of
from fedstage.plan import data_files
from fedstage.plan.digests import as_json, canonical
from fedstage.plan.graph import listed
from fedstage.plan.results import files_at, result_file
from fedstage.plan.segment_rules import segment_rules
from fedstage.plan.stages import RESULTS
from fedstage.plan.rules import WILDCARDS, command, stage_rules
from fedstage.plan.source import fingerprint_of, sources_of, stage_fingerprint
from fedstage.plan.syntax import modules
from fedstage.storage.project_plugins import load_for_jobs
from fedstage.storage.provenance import SUFFIX as RECORD
from fedstage.storage.raw_files import raw_digest
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
explained(load_for_jobs, config)
if workflow.is_main_process:
    os.environ[PLANNED] = str(last_change(modules().values()))
CATALOGUE = explained(load_catalogue, config, WORKFLOW, ARGUMENTS)
NAMED = explained(named_targets, CATALOGUE, ARGUMENTS)  # snakemake quickstart
ARGUMENTS = with_scales(ARGUMENTS, CATALOGUE.experiments)
EXECUTION = CATALOGUE.config.execution
BY_PARTICIPANT = EXECUTION.granularity == "participant"

if CATALOGUE.config.data_folder:
    os.environ.update(FEDSTAGE_DATA=CATALOGUE.config.data_folder)
# Whether this process plans jobs of its own environment, whose packages and devices it can look for.
IS_PLAN = workflow.is_main_process and not workflow.deployment_settings.deployment_method
# In a container or a conda environment, `fedstage` is the command that is installed there.
if not workflow.deployment_settings.deployment_method:
    prepare(os.environ, WORKFLOW / "bin", EXECUTION)
    # Warm workers take as long to start as a plan to be made, so if jobs are to run here, now.
    if workflow.resource_settings.cores and not workflow.output_settings.dryrun:
        start_early()


wildcard_constraints:
    **WILDCARDS,


# --- jobs of the graph ----------------------------------------------------------------------------


def found(kind, name):
    return explained(find, getattr(CATALOGUE, kind), name, kind)


def job_of(rule, wildcards):
    """Return the job of the graph that a rule of `stages.smk` runs."""
    config = found("folders", rule.folder(wildcards))
    return explained(rule.stage.job, config, *rule.place(wildcards))


def gpus_of(config):
    """Return how many GPUs a job that computes with models asks the scheduler for."""
    device = config.numerics.device
    return EXECUTION.gpu if device == "auto" else int(device.startswith("cuda"))


def threads_of_job(job):
    """Return how many threads a job takes: one unless it computes with models."""
    return job.config.numerics.threads if job.stage.on_device(job.config) else 1


def gpus_of_job(job):
    """Return how many GPUs a job asks the scheduler for."""
    return gpus_of(job.config) if job.stage.on_device(job.config) else 0


def params_of(stage, job):
    """Return the params of a stage's rule, given a function from wildcards to its job."""
    params = {
        "source": lambda w: fingerprint_of(job(w)),
        "sources": lambda w, input, output: sources(input),
    }
    if not stage.folder.recipe:
        params["settings"] = lambda w: settings_of(job(w))
    if stage is data_files.dataset:
        params["raw"] = lambda w: raw(job(w))
        params["owner"] = lambda w, output: owner(job(w))  # with an output, so it is not compared
    return params


def sources(files):
    """Return the option with the sources that may have made files, for jobs that read them.

    As a param that looks at the output it is not compared: an older input reruns its own job.
    """
    found = sources_of(list(files)) if EXECUTION.other_source == "refuse" else []
    return f"--sources {' '.join(found)}" if found else ""


def settings_of(job):
    """Return the settings that a stage takes as JSON, or nothing where there are none."""
    if IS_PLAN and not any(map(os.path.exists, job.files.values())):
        explained(check_packages, job.config)
    if job.stage is data_files.initial_model:  # a file of weights that it takes must be there
        made = Path(job.folder, "group_0.safetensors")
        explained(check_weights, job.config.model, default_folder(), made)
    return as_json(job.settings) if job.settings else ""


def raw(job):
    """Return the digest of the raw files of a data set.

    Snakemake compares params as a set. A data set without raw files repeats its settings there.
    """
    record = Path(f"results/logs/dataset/{Path(job.folder).name}{RECORD}")
    return explained(raw_digest, job.config, default_folder(), record) or as_json(job.settings)


def owner(job):
    """Return whose a data set is: the clients' of some run, or the server's alone."""
    runs = chain.from_iterable(CATALOGUE.runs.values())
    return "clients" if any(run.recipe.data == job.config for run in runs) else "server"


def new_recipe(wildcards):
    """Return the settings of a folder; if it is new, its models must fit, and what it needs be there.

    The device not where jobs go to other machines, and nothing for what has been trained already.
    """
    folder = f"results/{wildcards.folder}/{wildcards.recipe}"
    config = found("folders", folder)
    if IS_PLAN and not Path(folder, "recipe.yaml").exists():
        explained(check_packages, config)
        explained(check_models, config)
        if workflow.resource_settings.nodes is None:
            explained(check_device, config.numerics.device)
    return config


# --- inputs and outputs of results ----------------------------------------------------------------


def of_runs(*keys):
    """Return an input function: files that the description of each run names, each once."""

    def files(wildcards):
        runs = described(wildcards, "runs")["runs"]
        found = (listed(run[key]) for key in keys for run in runs if key in run)
        return list(dict.fromkeys(chain.from_iterable(found)))

    return files


def participants(wildcards):
    """Return the participants of runs where they count, and how many samples each client has."""
    tried = [one for run in described(wildcards, "runs")["runs"] for one in run["candidates"]]
    tables = [path for one in tried for path in one.get("participants", [])]
    others = of_runs("partition", "info")(wildcards)
    return list(dict.fromkeys([*tables, *others])) if tables else []


def retention(wildcards):
    """Return measures of forgetting, and their samples."""
    measures = of_runs("retention")(wildcards)
    right = [path.job.files["right"] for path in measures]
    return [*measures, *right]


def described(wildcards, what):
    """Return the description of an experiment at a scale: its runs, or claims."""
    return description(wildcards.experiment, wildcards.scale, what)


@cache  # every input function of every result looks at the runs
def description(experiment, scale, what):
    return explained(describe, CATALOGUE, experiment, scale, what)


def measurements(wildcards, kinds=("round_times", "communication", "retention")):
    """Return tables of runs beside metrics: seconds, bytes, forgetting, if these are measured."""
    wanted = CATALOGUE.experiments[wildcards.experiment].results
    return [result_file(kind, "by_run").format(**wildcards) for kind in kinds if kind in wanted]


def claims_of(wildcards):
    """Return the description of the claims on an experiment, if there are any."""
    return CLAIMS.format(**wildcards) if claims_on(CATALOGUE, wildcards.experiment) else []


def files_of_target(target):
    """Return the files of a target: its results, and the metrics that they are made of.

    The metrics are named beside the tables made of them, so that deleting one makes it again.
    """
    runs = trained_runs(CATALOGUE, target)
    # Snakemake's `exists` looks for its workflow where it is called from.
    states = (last_states(run, lambda file: exists(file)) for run in runs)
    return [*map(metrics_of, runs), *chain.from_iterable(states), *results_of(CATALOGUE, target)]
