"""Fingerprints of the source that a stage's results depend on: the params `source` of rules.

Snakemake reruns a rule if its shell command or params change, but does not see the package behind
the command. So each rule has in its params a digest of the modules that its stage can reach: the
syntax trees, without docstrings, of the closure of its imports. An edit reruns the stages that
reach it; an edit of comments, docstrings or formatting reruns nothing.

The modules that count follow from folders and settings:

- In `settings` and `plan`, definitions count one by one, if code that counts uses them
  (`fedstage.plan.definitions`); for stages whose results are about the plan itself, all of `plan`
  counts.
- A module that implements a choice, or that some settings name in `uses`, counts only for the
  recipes that choose it.
- A package that finds its modules by name counts with the modules that the recipe chooses.
"""

import hashlib
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from fedstage.plan import definitions, syntax
from fedstage.plan.definitions import Reached
from fedstage.plan.graph import File, Job, found_file
from fedstage.plan.jobs import OF_ROUNDS
from fedstage.plan.members import parse_evaluated, parse_sampled
from fedstage.plan.results import FOLDERS
from fedstage.plan.stages import OTHERS, RESULTS, STAGES, module_of
from fedstage.plan.syntax import PACKAGE, imports, module_digest, modules, parents, source

# Imported so that the classes of all choices are known before any fingerprint is computed.
from fedstage.settings import one_shot as _one_shot  # noqa: F401
from fedstage.settings.base import Choice, Settings, choices, subclasses
from fedstage.settings.exchange import teaches_public
from fedstage.settings.recipes import Recipe
from fedstage.settings.registry import PLUGINS

#: Modules, and rooms, whose definitions count one by one.
DECLARING = (
    "fedstage.errors",
    "fedstage.settings",
    "fedstage.plan",
    "fedstage.plan.stages",
    "fedstage.stages",
)


#: Classes of settings, each with its module.
Classes = frozenset[tuple[str, str]]


def chosen_modules(settings: Settings) -> frozenset[str]:
    """Return the optional modules that these settings need."""
    return frozenset(module for part in _parts(settings) for module in _needed_by(part))


def _needed_by(part: Settings) -> Iterator[str]:
    """Yield the optional modules that settings need by themselves, without their parts."""
    if isinstance(part, Choice):
        yield part.implemented_in
    fields = type(part).model_fields
    for key, module in part.uses.items():
        if getattr(part, key, fields[key].default) != fields[key].default:
            yield f"fedstage.{module}"


def _parts(value: Any) -> Iterator[Settings]:
    """Yield settings and all settings in their fields."""
    if isinstance(value, Settings):
        yield value
        value = tuple(getattr(value, key, None) for key in type(value).model_fields)
    for part in value if isinstance(value, tuple) else ():
        yield from _parts(part)


@cache
def optional_modules() -> frozenset[str]:
    """Return the modules that only some settings need."""
    used = {f"fedstage.{name}" for kind in subclasses(Settings) for name in kind.uses.values()}
    return frozenset(used.union(*(kind.modules() for kind in choices())))


@cache
def choice_rooms() -> frozenset[str]:
    """Return the packages that find the modules of alternatives by name."""
    return frozenset(f"fedstage.{kind.room}" for kind in choices())


@cache
def source_of(
    settings: Settings, stage: str, evaluated: str | None = None, members: str | None = None
) -> str:
    """Return the fingerprint that the rule of a stage carries for a recipe or other settings.

    The rounds of a recipe may be made by jobs of single stages or by segments, and a run may be
    continued the other way. So all their rules carry the fingerprint of the segment. This hardly
    causes more reruns: files of a distilled recipe depend on a student, and in other recipes only
    the first updates do not depend on an aggregation.

    `evaluated` is ``global_model`` or the name of a scored ensemble, `members` a kind of members
    whose logits are computed.
    """
    return stage_fingerprint(*reached_by(settings, stage, evaluated, members))


def fingerprint_of(job: Job) -> str:
    """Return the fingerprint that the rule of a job of the graph carries."""
    at, folder = job.at, job.stage.folder
    settings = job.config if folder.recipe or folder.setting else _taken(job.config)
    return source_of(settings, job.stage.name, at.get("evaluated"), at.get("members"))


def sources_of(files: Iterable[str]) -> list[str]:
    """Return the fingerprints of the rules that make files, each once; settings have none."""
    named = [found_file(file) for file in files]
    jobs = {file.job for file in named if isinstance(file, File)}
    folders = {file.split("/")[1] for file in named if not isinstance(file, File)}
    names = [stage.name for stage in (*OTHERS, *RESULTS)]
    results = (stage_fingerprint(name) for name in names if FOLDERS.get(name, name) in folders)
    return sorted({*map(fingerprint_of, jobs), *results})


@cache
def _taken(settings: Any) -> Any:
    """Return the settings that a stage takes; for a partition or weights, without the data set."""
    if "data" not in type(settings).model_fields:
        return settings
    kind: Any = type(settings).__bases__[0]
    return kind.model_construct(**{name: getattr(settings, name) for name in kind.model_fields})


def reached_by(
    settings: Settings, stage: str, evaluated: str | None = None, members: str | None = None
) -> tuple[str, frozenset[str], tuple[str, ...], Classes]:
    """Return the first arguments of `stage_fingerprint`, for settings and a stage."""
    job = next((name for name, command in STAGES.items() if stage in command.calls), stage)
    if job == "logits_segment" and _teaches(settings):
        job = "segment"  # which computes its teachers' logits itself
    parts = [settings]
    if evaluated not in (None, "global_model"):
        parts.append(parse_evaluated(str(evaluated)))
    if members is not None and (drawn := parse_sampled(members)):
        parts.append(drawn)
    chosen = frozenset().union(*map(chosen_modules, parts))
    classes = frozenset().union(*map(classes_of, parts))
    return job, chosen, called(job, settings), classes


def called(stage: str, settings: Settings) -> tuple[str, ...]:
    """Return the stages that a stage calls for a recipe; segments call what the recipe needs."""
    calls = STAGES[stage].calls
    if stage != "segment":
        return calls
    stages = (part for part in OF_ROUNDS if part.name in calls)
    used = tuple(part.name for part in stages if part.used(settings))
    return ("logits", "logits_segment", *used) if _teaches(settings) else used


def _teaches(settings: Settings) -> bool:
    return isinstance(settings, Recipe) and teaches_public(settings)


@cache
def classes_of(settings: Settings) -> Classes:
    """Return the classes of settings and of their parts, with their modules."""
    kinds = {kind for part in _parts(settings) for kind in type(part).__mro__}
    named = ((kind.__module__, kind.__name__) for kind in kinds)
    return frozenset((module, name) for module, name in named if module in modules())


def read_again() -> None:
    """Read the files again for the next fingerprints, without what functions have cached."""
    for module in (definitions, syntax, sys.modules[__name__]):
        for value in vars(module).values():
            if hasattr(value, "cache_clear"):
                value.cache_clear()


@cache
def stage_fingerprint(
    stage: str,
    chosen: frozenset[str] = frozenset(),
    calls: tuple[str, ...] = (),
    classes: Classes = frozenset(),
    package: Path = PACKAGE,
) -> str:
    """Return 12 hexadecimal digits that change with the code that a stage can reach.

    `chosen` are the modules of `chosen_modules`, `calls` further stages that the stage calls, and
    `classes` the classes of the settings in the job's configuration.
    """
    whole, counted = reachable(stage, chosen, calls, classes, package)
    parts = [(module, module_digest(module, package)) for module in sorted(whole)]
    digest = hashlib.sha256()
    for name, code in (*parts, *sorted(counted.items())):
        digest.update(f"{name} {code}\n".encode())
    return digest.hexdigest()[:12]


def reachable(
    stage: str,
    chosen: frozenset[str] = frozenset(),
    calls: tuple[str, ...] = (),
    classes: Classes = frozenset(),
    package: Path = PACKAGE,
) -> tuple[frozenset[str], dict[str, str]]:
    """Return what can reach the results of a stage with these choices.

    These are modules, whose code counts as a whole, and definitions of others with their digests.
    """
    whole, declared = _reached(stage, chosen, calls, package)
    counted = declared.copy()
    counted.finish(classes)
    return whole, counted.definitions


@cache
def _reached(
    stage: str, chosen: frozenset[str], calls: tuple[str, ...], package: Path
) -> tuple[frozenset[str], Reached]:
    """Return the modules that count as a whole, and the definitions of others that count."""
    declaring = _declaring(stage in STAGES and STAGES[stage].about_plan, package)
    unchosen = optional_modules() - chosen
    waiting = {module_of(name) for name in (stage, *calls)}
    waiting |= parents(waiting) - declaring
    found: set[str] = set()
    declared = Reached(declaring, package)
    # The code that calls the function of a stage runs in each job, too.
    declared.name("fedstage.stages.call")
    waiting |= declared.modules - optional_modules()
    while waiting:
        # First all that imports reach, so that few passes over the names used in code are needed.
        new = set()
        while waiting:
            module = waiting.pop()
            new.add(module)
            edges = imports(module, package)
            if module not in optional_modules():
                edges -= unchosen
            if module in choice_rooms():
                edges |= {name for name in chosen if module in _found_by(name)}
            waiting |= edges - declaring - found - new
        found |= new
        declared.add([source(module, package).code for module in new])
        waiting = declared.modules - optional_modules() - found
    return frozenset(found), declared


def _found_by(module: str) -> frozenset[str]:
    """Return the packages that find the module of an alternative, by its name or as a plugin."""
    rooms = (f"fedstage.{room}" for room in PLUGINS.rooms_of(module))
    return frozenset((module.rpartition(".")[0], *rooms))


@cache
def _declaring(about_plan: bool, package: Path) -> frozenset[str]:
    """Return the modules in declaring rooms, for stages about the plan or for others."""
    rooms = [f"{name}." for name in DECLARING if not (about_plan and name == "fedstage.plan")]
    found = (name for name in modules(package) if f"{name}.".startswith((*rooms,)))
    stages = "fedstage.stages."
    return frozenset(("fedstage", *(name for name in found if not name.startswith(stages))))
