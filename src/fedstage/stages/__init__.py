"""Stages: thin functions, which connect files with the packages below.

`fedstage.plan.stages` lists them all. The function of a stage in the graph takes a configuration,
and the files that it reads as one object, whose class the graph declares. Its keywords are its
outputs and the values of its place, such as round and group. Several outputs may be one mapping,
`made`, by the names that the graph declares, or an object, if many stages write the same. It reads,
calls pure functions, and writes; a stage that does several jobs in one returns the seconds of each.

It raises `FedstageError` if an input is missing, damaged or does not fit, a setting or option is
invalid, or training diverges. Figures are PNG or SVG, by their suffix; `runs` is a JSON file of
`fedstage.results.runs_file.ExperimentRuns`.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from fedstage.plan.digests import as_json
from fedstage.plan.graph import Job
from fedstage.plan.stages import STAGES, module_of
from fedstage.randomness import seed_globals
from fedstage.settings.base import Settings
from fedstage.storage.yaml_files import read_recipe

#: Seconds of the parts of a job with several parts, by the file that each part made.
Seconds = dict[str, float]
#: The files that a stage makes, by the options that `fedstage.plan` declares.
Made = Mapping[str, Path]


def find_stage(name: str) -> Callable[..., Seconds | None]:
    """Return the function of a stage, after importing its module."""
    stage: Callable[..., Seconds | None] = getattr(import_module(module_of(name)), name)
    return stage


@dataclass(frozen=True)
class Option:
    """An option of a stage: its name, the type of its values, and how many there may be."""

    name: str
    kind: type
    several: bool
    required: bool


@cache
def options_of(name: str) -> tuple[Option, ...]:
    """Return the options of a stage, from the signature of its function."""
    return tuple({option.name: option for option in _options(find_stage(name))}.values())


def _options(function: Callable[..., Any]) -> Iterator[Option]:
    hints = get_type_hints(function)
    for parameter in inspect.signature(function).parameters.values():
        hint = hints[parameter.name]
        if _is_configuration(hint):
            yield Option("recipe", Path, several=False, required=True)
        elif hint == Made:
            yield from (_option(output, Path) for output in STAGES[function.__name__].outputs)
        elif is_dataclass(files := get_origin(hint) or hint):
            yield from (_option(*named) for named in get_type_hints(files).items())
        else:
            yield _option(option_of(parameter.name), hint)


def option_of(parameter: str) -> str:
    """Return the option of a parameter, such as ``round`` for ``round_``, which is no builtin."""
    return parameter.rstrip("_")


def _option(name: str, hint: Any) -> Option:
    """Return the option of a type: one value, a list of values, or an optional value."""
    optional = type(None) in get_args(hint)
    if optional:
        hint = next(part for part in get_args(hint) if part is not type(None))
    several = get_origin(hint) is list
    kind = get_args(hint)[0] if several else hint
    return Option(name, Path if isinstance(kind, TypeVar) else kind, several, not optional)


def _is_configuration(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Settings)


def call(name: str, given: Mapping[str, Any], config: Any = None) -> Seconds | None:
    """Call a stage with its options, by name; paths may be texts.

    The configuration is read from the file of the option `recipe`, unless `config` is given. Global
    generators are seeded by what identifies the job: its seed, its stage, and its files below the
    folder of the configuration.
    """
    function = find_stage(name)
    values = {option.name: _value(option, given.get(option.name)) for option in options_of(name)}
    arguments: dict[str, Any] = {}
    for parameter, hint in get_type_hints(function).items():
        if parameter == "return":
            continue
        if _is_configuration(hint):
            arguments[parameter] = read_recipe(values["recipe"], hint) if config is None else config
        elif hint == Made:
            arguments[parameter] = {output: values[output] for output in STAGES[name].outputs}
        elif is_dataclass(files := get_origin(hint) or hint):
            arguments[parameter] = hint(**{part.name: values[part.name] for part in fields(files)})
        else:
            arguments[parameter] = values[option_of(parameter)]
    seed = getattr(arguments.get("recipe"), "seed", values.get("settings") or "")
    seed_globals(seed, name, *_made(name, values))
    return function(**arguments)


def _made(name: str, values: Mapping[str, Any]) -> Iterator[str]:
    """Yield the files of a job below their folder; none of participants, who may share a job."""
    for output, file in STAGES[name].outputs.items():
        if isinstance(path := values.get(output), Path):
            yield str(Path(*path.parts[-file.count("/") - 1 :]))


def run_job(job: Job, *others: Job) -> Seconds:
    """Run a job of the graph, and participants that train from the same files with it.

    Returns the seconds of each, by its main file.
    """
    begun, stage, taken = perf_counter(), job.stage, job.inputs | job.at
    if not stage.folder.recipe:
        taken[stage.folder.setting or "settings"] = as_json(job.settings)
    if stage.several:
        together = (job, *others)
        taken["participants"] = [one.at["participant"] for one in together]
        taken |= {name: [one.files[name] for one in together] for name in job.files}
    else:
        taken |= job.files
    seconds = call(stage.name, taken, job.config)
    return seconds or {next(iter(job.files.values())): perf_counter() - begun}


def _value(option: Option, value: Any) -> Any:
    """Return the value of an option as its stage takes it."""
    if option.several and value is not None:
        return [option.kind(part) for part in ([value] if isinstance(value, str) else value)]
    if value is None or value == []:  # how the graph gives no file
        return [] if option.several and option.required else None
    return option.kind(value)
