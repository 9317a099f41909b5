"""The configuration, checked, and the small functions that rules share."""

import gc
import logging
import os
import shlex
import sys
import sysconfig
from functools import cache
from itertools import chain, filterfalse
from pathlib import Path

from fedstage.data.folder import default_folder
from fedstage.execution.executor import prepare
from fedstage.execution.faults import explained
from fedstage.execution.imported import PLANNED, last_change
from fedstage.execution.requirements import check_device, check_models, check_packages
from fedstage.execution.requirements import check_tested, check_weights
from fedstage.experiments.catalogue import choice_id, find, load_catalogue, with_scales
from fedstage.experiments.catalogue import metrics_of, trained_runs
from fedstage.experiments.descriptions import files_of, files_of_rounds
from fedstage.experiments.targets import asked, asked_runs, describe, describe_choice
from fedstage.experiments.targets import last_states, named_targets, results_of
from fedstage.plan.data_files import AnyRecipe, Initial, raw_choice
from fedstage.plan.graph import listed, recipe_file
from fedstage.plan.results import choice_file, chosen_file, chosen_metrics_file
from fedstage.plan.results import description_file, files_at
from fedstage.plan.runs import settings_of_folders, sources_of
from fedstage.plan.segment_rules import segment_rules
from fedstage.plan.stages import RECIPES, RESULTS, given_files
from fedstage.plan.rules import WILDCARDS, stage_rules
from fedstage.plan.source import Source, source_of_job
from fedstage.plan.syntax import modules
from fedstage.settings.data import DataOption
from fedstage.storage.planned import write_json, write_raw, write_recipe, write_source
from fedstage.storage.project_plugins import load_for_jobs
from fedstage.storage.provenance import SUFFIX as RECORD
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
os.environ.setdefault("FEDSTAGE_CLIENTS_PER_GPU", str(EXECUTION.clients_per_gpu))
# In a container or a conda environment, `fedstage` is the command that is installed there.
if not workflow.deployment_settings.deployment_method:
    os.environ["PATH"] = sysconfig.get_path("scripts") + os.pathsep + os.environ.get("PATH", "")
    if IS_PLAN and workflow.resource_settings.cores and not workflow.output_settings.dryrun:
        prepare(EXECUTION)


wildcard_constraints:
    **WILDCARDS,


ASKED = explained(asked, CATALOGUE, ARGUMENTS)
RUNS = explained(asked_runs, CATALOGUE, ARGUMENTS)
FOLDERS = explained(settings_of_folders, [run.recipe for run in RUNS])


# --- jobs of the graph ----------------------------------------------------------------------------


def job_of(rule, wildcards):
    """Return the job of the graph that a rule of `stages.smk` runs."""
    config = explained(find, FOLDERS, rule.folder(wildcards), "folders")
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


# --- files that the plan writes, and its jobs read -------------------------------------------------


def has_area(data):
    """Return whether a table has areas under the ROC curve on a data set."""
    tables = (CATALOGUE.experiments[name].table for name, _ in CATALOGUE.runs)
    runs = (one for one, table in zip(CATALOGUE.runs.values(), tables) if table.metric == "auc")
    return any(run.recipe.data == data for run in chain.from_iterable(runs))


def check_new(folder, config):
    """Check that the models of a new folder fit, and that what it needs is there.

    The device not where jobs go to other machines, and nothing for what has been trained already.
    """
    explained(check_packages, config)
    explained(check_models, config)
    if isinstance(config, DataOption) and has_area(config.data):
        explained(check_tested, config.data, default_folder())
    if isinstance(config, Initial):  # a file of weights that it takes must be there
        explained(
            check_weights, config.model, default_folder(), Path(folder, "group_0.safetensors")
        )
    if isinstance(config, AnyRecipe) and workflow.resource_settings.nodes is None:
        explained(check_device, config.numerics.device)


def write_plan():
    """Write what determines the files of this call: settings, source, raw data, descriptions."""
    for folder, config in FOLDERS.items():
        if IS_PLAN and not any(Path(folder).glob("*[!l]")):
            check_new(folder, config)
        explained(write_recipe, recipe_file(folder), config)
        if raw := raw_choice(config):
            name, stage = Path(folder).name, "partition" if raw is not config.data else "dataset"
            record = Path(f"results/logs/{stage}/{name}{RECORD}")
            explained(write_raw, f"results/raw/{name}.json", raw, default_folder(), record)
    sources = {source for run in RUNS for source in explained(sources_of, run)}
    for source in sources.union(map(Source, ["choice", *(stage.name for stage in RESULTS)])):
        explained(write_source, source)
    for at in ASKED:
        whats = ["runs", "results"] + ["claims"] * description(*at, "results")["judged"]
        for what in whats:
            explained(write_json, described_in(*at, what), description(*at, what))
        for run in CATALOGUE.runs[at]:
            if run.candidates:
                explained(write_json, choice_file(choice_id(run)), describe_choice(run))


def inputs_of(job):
    """Return the inputs of a job: files of other jobs, and of the plan."""
    planned = {"recipe": recipe_file(job.folder), "source": source_of_job(job).file}
    planned |= {"raw": raw} if (raw := job.inputs.get("raw")) else {}
    return job.inputs | {name: local(path) for name, path in planned.items()}


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


def described_in(experiment, scale, what):
    """Return the file with the description of an experiment."""
    return description_file(what).format(experiment=experiment, scale=scale)


def reads_of(stage):
    """Return an input function of a stage of results: what its command reads, and the source."""

    def files(wildcards):
        at = (wildcards.experiment, wildcards.scale)
        planned = {"runs": described_in(*at, "runs"), "source": Source(stage).file}
        given = given_files(stage, description(*at, "runs") | description(*at, "results"))
        planned |= {name: given.pop(name) for name in ("definitions", "wanted") if name in given}
        return {name: local(path) for name, path in planned.items()} | given

    return files


def files_of_target(target):
    """Return the files of a target: its results, and the metrics that they are made of.

    The metrics are named beside the tables made of them, so that deleting one makes it again.
    """
    runs = trained_runs(CATALOGUE, target)
    # Snakemake's `exists` looks for its workflow where it is called from.
    states = (last_states(run, lambda file: exists(file)) for run in runs)
    return [*map(metrics_of, runs), *chain.from_iterable(states), *results_of(CATALOGUE, target)]


if workflow.is_main_process:
    write_plan()
