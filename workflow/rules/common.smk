"""The configuration, checked, and the small functions that rules share."""

import atexit
import gc
import logging
import os
import shlex
import sys
import sysconfig
from functools import cache
from itertools import chain, filterfalse
from pathlib import Path
from typing import get_args

from fedstage.storage.raw_files import default_folder
from fedstage.execution.executor import prepare
from fedstage.execution.terminal_log import explained
from fedstage.execution.imported import PLANNED, last_change
from fedstage.execution.jobs import files_of_runs
from fedstage.execution.requirements import check_device, check_models, check_packages
from fedstage.execution.requirements import check_tested, check_weights
from fedstage.experiments.catalogue import choice_id, find, load_catalogue, with_scales
from fedstage.experiments.catalogue import metrics_of, trained_runs
from fedstage.experiments.descriptions import files_of, files_of_rounds
from fedstage.experiments.targets import asked, asked_runs, describe, describe_choice
from fedstage.experiments.targets import last_states, named_targets, results_of
from fedstage.plan.data_files import AnyRecipe, Initial, raw_choice
from fedstage.plan.graph import place_value, recipe_file
from fedstage.plan.members import PATTERN as MEMBERS
from fedstage.plan.results import FILES, FURTHER, choice_file, description_file
from fedstage.plan.runs import settings_of_folders, sources_of
from fedstage.plan.segment_rules import named, segment_rules
from fedstage.plan.stages import FIGURES, GRAPH, OF_SETTINGS, RESULTS, TABLES, given_files
from fedstage.plan.source import Source, source_of_job
from fedstage.plan.syntax import modules
from fedstage.protocol.teaching import re_estimates
from fedstage.settings.data import DataOption
from fedstage.settings.scores import Role
from fedstage.storage.planned import write_json, write_raw, write_recipe, write_source
from fedstage.storage.yaml_files import load_for_jobs
from fedstage.storage.yaml_files import load_yaml

# A chain of rounds is as deep a graph as it is long; Python's own limit allows some 400 rounds.
sys.setrecursionlimit(20000)
# On a full disk, what snakemake cannot write into its own log is no news, and would be a traceback.
logging.raiseExceptions = False
# Nor is there much to collect among the objects of a graph, where Python would look for it often.
gc.set_threshold(200_000, 50, 100)
# At the end, to free these objects one by one would take a quarter of the time of a large `-n`.
atexit.register(gc.freeze)


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
    os.environ.update(
        PATH=os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", "")])
    )
    if IS_PLAN and workflow.resource_settings.cores and not workflow.output_settings.dryrun:
        prepare(EXECUTION)


ROLES = "|".join(get_args(Role))


wildcard_constraints:
    recipe="[^/]+",
    round=r"\d{4}",
    first=r"\d{4}",
    last=r"\d{4}",
    group=r"\d+",
    participant=r"\d+",
    client=r"\d+",
    members=MEMBERS,
    images="[^/]+",
    who=r"each_client|client_\d+|pooled|core",
    precision="fp32|int8-[0-9a-f]{10}",
    evaluated=r"[\w.=]+",
    role=ROLES,
    rounds=r"\d{4}",
    every=r"\d+",
    choice="[^/]+",
    experiment="[^/]+",
    scale=r"[^/.]+",


ASKED = explained(asked, CATALOGUE, ARGUMENTS)
RUNS = explained(asked_runs, CATALOGUE, ARGUMENTS)
FOLDERS = explained(settings_of_folders, [run.recipe for run in RUNS])


# --- jobs of the graph ----------------------------------------------------------------------------


def reads(name, of=None):
    """Return the input function of a stage: the files of other jobs and of the plan that jobs read.

    `of` is the folder of its files, where stages of several folders have the name.
    """
    stage = next(one for one in GRAPH if one.name == name and of in (None, one.folder.name))
    folder = f"results/{stage.folder.name}/{stage.folder.pattern}"

    def files(wildcards):
        values = dict(wildcards.items())
        config = explained(find, FOLDERS, folder.format(**values), "folders")
        if not stage.used(config):
            sys.exit(f"fedstage: {folder.format(**values)}: {name} makes nothing of these settings")
        place = (place_value(values[key]) for key in stage.place)
        job = explained(stage.job, config, *place)
        planned = {"recipe": recipe_file(job.folder), "source": source_of_job(job).file}
        planned |= {"raw": raw} if (raw := job.inputs.get("raw")) else {}
        return job.inputs | {key: local(path) for key, path in planned.items()}

    return files


def recipes(name, output=None, without=None):
    """Return a pattern of the recipes of which a stage makes an output, or makes none of a name."""
    (stage,) = (one for one in GRAPH if one.name == name)
    made = {
        Path(folder).name: stage.outputs if stage.made is None else stage.made(config)
        for folder, config in FOLDERS.items()
        if folder.split("/")[1] == stage.folder.name and stage.used(config)
    }
    return named(one for one in made if without not in made[one] and output in (None, *made[one]))


def config_of(input):
    """Return the settings of the folder of a job's files."""
    return FOLDERS[str(Path(input.recipe).parent)]


def numerics_of(input):
    """Return the numerics of a job that computes with models."""
    config = config_of(input)
    return (config.data if isinstance(config, DataOption) else config).numerics


def threads(wildcards, input):
    """Return how many threads a job that computes with models takes."""
    return numerics_of(input).threads


def gpus(wildcards, input):
    """Return how many GPUs a job that computes with models asks the scheduler for."""
    device = numerics_of(input).device
    return EXECUTION.gpu if device == "auto" else int(device.startswith("cuda"))


def threads_of_aggregation(wildcards, input):
    """Return how many threads an average takes: one, unless it runs the model."""
    return threads(wildcards, input) if re_estimates(config_of(input)) else 1


def gpus_of_aggregation(wildcards, input):
    """Return how many GPUs an average asks for: none, unless it runs the model."""
    return gpus(wildcards, input) if re_estimates(config_of(input)) else 0


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
            name, of_data = Path(folder).name, isinstance(config, DataOption)
            stage = ("dataset" if raw is config.data else "features") if of_data else "partition"
            record = Path(f"results/logs/{stage}/{name}.json")
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


# --- inputs of results ----------------------------------------------------------------------------


def participants(wildcards):
    """Return the participants of runs where they count, and how many samples each client has."""
    runs = described(wildcards, "runs")["runs"]
    tried = [one for run in runs for one in run["candidates"]]
    tables = [path for one in tried for path in one.get("participants", [])]
    others = [run[key] for key in ("partition", "info") for run in runs if key in run]
    return list(dict.fromkeys([*tables, *others])) if tables else []


def right(wildcards):
    """Return the samples of measures of forgetting."""
    runs = described(wildcards, "runs")["runs"]
    return [file.job.files["right"] for run in runs for file in run.get("retention", ())]


def traffic(wildcards):
    """Return what bytes are counted from, where they are."""
    at = (wildcards.experiment, wildcards.scale)
    return files_of(CATALOGUE, *at) if described(wildcards, "runs").get("traffic") else []


def described(wildcards, what):
    """Return the description of an experiment at a scale: its runs, or claims."""
    return description(wildcards.experiment, wildcards.scale, what)


@cache  # every input function of every result looks at the runs
def description(experiment, scale, what):
    return explained(describe, CATALOGUE, experiment, scale, what)


def described_in(experiment, scale, what):
    """Return the file with the description of an experiment."""
    return description_file(what).format(experiment=experiment, scale=scale)


def given(stage):
    """Return the input function of a stage of results: what its command reads, and the source."""

    def files(wildcards):
        at, shown = (wildcards.experiment, wildcards.scale), wildcards.get("shown", "")
        planned = {"runs": described_in(*at, "runs"), "source": Source(stage).file}
        about = description(*at, "runs") | description(*at, "results")
        read = given_files(stage, about, shown)
        planned |= {name: read.pop(name) for name in ("definitions", "wanted") if name in read}
        of_runs = files_of_runs(stage, about, shown)
        return {name: local(path) for name, path in planned.items()} | read | of_runs

    return files


def files_of_target(target):
    """Return the files of a target: its results, and the metrics that they are made of.

    The metrics are named beside the tables made of them, so that deleting one makes it again.
    """
    runs = trained_runs(CATALOGUE, target)
    # Snakemake's `exists` looks for its workflow where it is called from.
    states = (last_states(run, lambda file: exists(file)) for run in runs)
    return [*map(metrics_of, runs), *chain.from_iterable(states), *results_of(CATALOGUE, target)]


def in_report(path, what):
    """Return a file that Snakemake's report shows."""
    return report(
        path,
        caption="../report/result.rst",
        category="{experiment}",
        labels={"result": what, "scale": "{scale}"},
    )


def choice_of(wildcards):
    """Return the choice of a description: which candidates are compared, and by what."""
    return explained(find, CATALOGUE.choices, wildcards.choice, "choices")


def link_storage(provider):
    """Let the folders of results lead to an object storage's copies on this machine."""
    prefix = workflow.storage_settings.default_storage_prefix.rstrip("/")
    made = (path.split("/")[1] for stage in RESULTS for path in stage.outputs.values())
    for folder in sorted({*OF_SETTINGS, *TABLES, *made} - {"{shown}"}):
        query = f"{prefix}/results/{folder}"
        here, there = Path("results", folder), Path(provider.object(query).local_path()).absolute()
        there.mkdir(parents=True, exist_ok=True)
        here.parent.mkdir(exist_ok=True)
        if not here.exists():
            here.symlink_to(there)
        elif not here.samefile(there):
            sys.exit(f"fedstage: {here}: has files that are in no object storage; move them away")


if workflow.is_main_process:
    if workflow.storage_registry.default_storage_provider:
        link_storage(workflow.storage_registry.default_storage_provider)
    write_plan()
