"""Stages as functions of their files and settings, whatever these are called; others are none."""

import dataclasses
import inspect
import json
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar, get_args, get_origin, get_type_hints

import yaml

from fedstage.execution.cli import main
from fedstage.plan import data_files
from fedstage.plan.graph import behind, recipe_file
from fedstage.plan.source import source_of_job
from fedstage.plan.stages import STAGES
from fedstage.plan.training import global_model
from fedstage.protocol.digests import SCHEMA_VERSION, digest
from fedstage.randomness import seed_globals
from fedstage.settings.base import Settings
from fedstage.settings.data import DataOption
from fedstage.settings.validation import validate
from fedstage.stages import Made, find_stage, run_job
from fedstage.storage.planned import write_recipe, write_source
from fedstage.storage.yaml_files import read_recipe


def __getattr__(name):
    if name.startswith("_"):
        raise AttributeError(name)
    return partial(_call, name)


def _call(name, **options):
    return call(name, options)


def call(name, given, config=None):
    """Call the function of a stage with files and values, by the names that the graph has for them.

    A recipe is a file, unless `settings` are given, as JSON, or a configuration.
    """
    function, arguments = find_stage(name), {}
    given = dict(given)
    settings = given.pop("settings", None)
    known = set()
    for parameter, hint in get_type_hints(function).items():
        if parameter == "return":
            continue
        option = parameter.rstrip("_")
        if isinstance(hint, type) and issubclass(hint, Settings):
            known.add("recipe")
            if settings is not None:
                config = _validated(hint, json.loads(settings))
            arguments[parameter] = config or read_recipe(Path(given["recipe"]), hint)
        elif hint == Made:
            made = STAGES[name].outputs
            known |= made.keys()
            arguments[parameter] = {key: _value(given.get(key), Path) for key in made}
        elif dataclasses.is_dataclass(files := get_origin(hint) or hint):
            hints = get_type_hints(files)
            known |= hints.keys()
            arguments[parameter] = files(
                **{key: _value(given.get(key), of) for key, of in hints.items()}
            )
        else:
            known.add(option)
            default = inspect.signature(function).parameters[parameter].default
            if option in given or default is inspect.Parameter.empty:
                arguments[parameter] = _value(given.get(option), hint)
    if unknown := given.keys() - known:
        raise TypeError(f"{name}: no option {sorted(unknown)[0]}")
    seed_globals(getattr(arguments.get("recipe"), "seed", ""), name)
    return function(**arguments)


def _validated(kind, raw):
    """Return settings without the data set's, except for the stage that reads one."""
    if kind is DataOption:
        return validate(kind, raw if "data" in raw else {"data": raw}, "settings")
    return validate(kind, {key: value for key, value in raw.items() if key != "data"}, "settings")


def _value(value, hint):
    """Return a value as its type has it: paths may be texts, and a list may be left out."""
    several = get_origin(hint) is list
    kinds = [one for one in get_args(hint) if one is not type(None)] or [hint]
    kind = Path if isinstance(kinds[0], TypeVar) else kinds[0]
    if several:
        return [kind(one) for one in ([value] if isinstance(value, str | Path) else value or [])]
    if get_origin(kind) is list:
        return None if value is None else [Path(one) for one in value]
    if value is None or value == []:
        return None
    return kind(value) if kind in (Path, int, str) else value


def call_with(name, files, **options):
    """Call a stage with files, as a job of the graph names them, and other options."""
    return call(name, {**files, **options})


def recipe(*, settings, output):
    """Write a file of settings, which are JSON."""
    raw = json.loads(settings)
    content = {"schema": SCHEMA_VERSION, "digest": digest(raw), "settings": raw}
    Path(output).parent.mkdir(parents=True, exist_ok=True)
    Path(output).write_text(yaml.safe_dump(content, sort_keys=False))


def partition(*, train, test=None, info=None, **options):
    """Call the stage; by default the test samples are the training samples."""
    with TemporaryDirectory() as folder:
        if info is None:
            info = Path(folder, "info.json")
            info.write_text(json.dumps({"name": "mine", "class_names": [*map(str, range(1000))]}))
        _call("partition", train=train, test=test or train, info=info, **options)


def dataset(**options):
    """Call the stage; outputs that are not named are written, too, and deleted."""
    with TemporaryDirectory() as folder:
        others = {name: Path(folder, name) for name in STAGES["dataset"].outputs}
        _call("dataset", **{**others, **options})


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
        write_recipe(recipe_file(job.folder), job.config)
        run_job(job)


def make_by_command(*files):
    """Make files and all behind them as rules do, with what a plan writes, logs and records."""
    for job in behind(files):
        write_recipe(recipe_file(job.folder), job.config)
        write_source(source_of_job(job))
        run_command(job.stage.name, job.folder, **job.at)


def run_command(stage, folder, **place):
    """Run ``fedstage run`` on the recipe of a folder."""
    words = [f"{name}={value}" for name, value in place.items()]
    assert main(["run", stage, recipe_file(folder), *words]) == 0, (stage, folder, place)


def make_data(recipe):
    """Make what rounds of a run start from: data set, partition, participants and weights."""
    make(
        data_files.data_file(recipe.data, "train"), data_files.clients_table(recipe),
        data_files.participation_table(recipe, 1),
        *(global_model(recipe, 0, group) for group in range(recipe.global_models)),
    )  # fmt: skip
