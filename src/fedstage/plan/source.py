"""The source that a stage's results depend on, as an input file of its jobs.

Snakemake does not see the package behind a shell command. So a job reads a file below
``results/source`` with the digests of the modules that its stage can reach: of the syntax trees,
without docstrings, of the closure of its imports. The plan writes it if it has changed. An edit
reruns the stages that reach it; one of comments, docstrings or formatting, or one that is taken
back, reruns nothing.

The modules that count follow from folders and settings:

- In `settings` and `plan`, definitions count one by one, if code that counts uses them
  (`fedstage.plan.definitions`); for stages whose results are about the plan itself, all of `plan`
  counts.
- A module that implements a choice, or that some settings name in `uses`, counts only for the
  recipes that choose it.
- A package that finds its modules by name counts with the modules that the recipe chooses.
"""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from fedstage.plan import definitions, syntax
from fedstage.plan.definitions import Reached
from fedstage.plan.graph import Job, Stage
from fedstage.plan.members import parse_evaluated, parse_sampled
from fedstage.plan.results import RESULTS
from fedstage.plan.stages import STAGES, module_of
from fedstage.plan.syntax import PACKAGE, imports, module_digest, modules, parents, source
from fedstage.protocol.digests import digest

# Imported so that the classes of all choices are known before any fingerprint is computed.
from fedstage.settings import one_shot as _one_shot  # noqa: F401
from fedstage.settings.base import Choice, Settings, choices, subclasses
from fedstage.settings.groups import PlanSettings
from fedstage.settings.models import InitialModel
from fedstage.settings.partitions import PartitionSettings
from fedstage.settings.registry import PLUGINS

DIGITS = 12  # hexadecimal, of the SHA-256 of a module

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


@dataclass(frozen=True)
class Source:
    """A stage, and what settings choose of the source: modules, and classes of settings."""

    stage: str
    chosen: frozenset[str] = frozenset()
    classes: Classes = frozenset()

    @cached_property
    def file(self) -> str:
        """The file that lists the source; its name does not change with edits."""
        choices = [sorted(self.chosen), sorted(self.classes)]
        name = f"{self.stage}-{digest(choices)}" if any(choices) else self.stage
        return f"{RESULTS}/source/{name}.json"

    def parts(self, package: Path = PACKAGE) -> dict[str, str]:
        """Return the digests of the modules, and of definitions of others, that can be reached."""
        whole, counted = reachable(self, package)
        found = counted | {module: module_digest(module, package) for module in whole}
        return {name: found[name][:DIGITS] for name in sorted(found)}


def digest_now(part: str, package: Path = PACKAGE) -> str | None:
    """Return the digest of a module or ``module:definition``, None if there is none any more."""
    module, _, name = part.partition(":")
    if module not in modules(package):
        return None
    found = source(module, package)
    code = found.definitions.get(name) if name else found.code
    return None if code is None else code.digest[:DIGITS]


def changed_files(then: Mapping[str, str | None], now: Mapping[str, str | None]) -> list[str]:
    """Return the files, below the package's folder, of the parts of a source that differ."""
    parts = (part for part in {**then, **now} if then.get(part) != now.get(part))
    return sorted({part.partition(":")[0].replace(".", "/") + ".py" for part in parts})


@cache
def source_of_job(job: Job) -> Source:
    """Return the source behind the files of a job of the graph."""
    at = job.at
    return source_of(taken(job.config), job.stage.name, at.get("evaluated"), at.get("members"))


@cache
def taken(settings: Any) -> Any:
    """Return settings of a partition or of weights without the data set, which is an input."""
    if not isinstance(settings, PartitionSettings | PlanSettings | InitialModel):
        return settings
    kind: Any = type(settings).__bases__[0]
    return kind.model_construct(**{name: getattr(settings, name) for name in kind.model_fields})


@cache
def source_of(
    settings: Settings, stage: str, evaluated: str | None = None, members: str | None = None
) -> Source:
    """Return the source behind the files of a stage for a recipe or other settings.

    `evaluated` is ``global_model`` or the name of a scored ensemble, `members` a kind of members
    whose logits are computed.
    """
    parts = [settings]
    if evaluated not in (None, "global_model"):
        parts.append(parse_evaluated(str(evaluated)))
    if members is not None and (drawn := parse_sampled(members)):
        parts.append(drawn)
    chosen = frozenset().union(*map(chosen_modules, parts))
    return Source(stage, chosen, frozenset().union(*map(classes_of, parts)))


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


def reachable(of: Source, package: Path = PACKAGE) -> tuple[frozenset[str], dict[str, str]]:
    """Return what can reach the results of a stage with these choices.

    These are modules, whose code counts as a whole, and definitions of others with their digests.
    """
    whole, declared = _reached(of.stage, of.chosen, package)
    counted = declared.copy()
    counted.finish(of.classes)
    return whole, counted.definitions


@cache
def _reached(stage: str, chosen: frozenset[str], package: Path) -> tuple[frozenset[str], Reached]:
    """Return the modules that count as a whole, and the definitions of others that count."""
    declared = STAGES[stage]
    declaring = _declaring(declared.about_plan, package)
    unchosen = optional_modules() - chosen
    waiting = {module_of(stage)}
    waiting |= parents(waiting) - declaring
    found: set[str] = set()
    reached = Reached(declaring, package)
    # The code that calls the function of a stage runs in each job, too, and finds its files.
    reached.name("fedstage.stages.run_job")
    if isinstance(declared, Stage):
        reached.name(f"{declared.inputs.__module__}.{stage}")
    waiting |= reached.modules - optional_modules()
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
        reached.add([source(module, package).code for module in new])
        waiting = reached.modules - optional_modules() - found
    return frozenset(found), reached


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
