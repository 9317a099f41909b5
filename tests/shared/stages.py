"""Stages as functions of their options, as on the command line; files of no option are none."""

import json
from functools import partial
from pathlib import Path

from fedstage.plan import data_files
from fedstage.plan.digests import as_json, canonical
from fedstage.plan.graph import behind
from fedstage.plan.training import global_model
from fedstage.stages import call, run_job


def __getattr__(name):
    if name.startswith("_"):
        raise AttributeError(name)
    return partial(_call, name)


def _call(name, **options):
    return call(name, options)


def call_with(name, files, **options):
    """Call a stage with files, as a job of the graph names them, and other options."""
    return call(name, {**files, **options})


def participation(*, first, last, output, histogram=None, groups=None, **plan):
    """Call the stage with a plan of participants, by default uniform ones."""
    drawn_by = "uniform" if histogram is None else "by_samples"
    settings = {"participation": drawn_by, "groups": groups, **plan}
    _call(
        "participation", settings=json.dumps(settings), first=first, last=last,
        histogram=histogram, output=output,
    )  # fmt: skip


def make(*files):
    """Run the jobs of files below the current folder, which all that they read is in."""
    for file in files:
        run_job(file.job)


def make_all(*files):
    """Make files below the current folder, and what is missing of all that is behind them."""
    for job in behind(files):
        if all(Path(file).exists() for file in job.files.values()):
            continue
        if settings := job.inputs.get("recipe"):
            call("recipe", {"settings": as_json(canonical(job.config)), "output": settings})
        run_job(job)


def make_data(recipe):
    """Make what rounds of a run start from: data set, partition, participants and weights."""
    make(
        data_files.data_file(recipe.data, "train"), data_files.clients_table(recipe),
        data_files.participation_table(recipe, 1),
        *(global_model(recipe, 0, group) for group in range(recipe.global_models)),
    )  # fmt: skip
