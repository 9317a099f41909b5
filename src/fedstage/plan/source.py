"""The source that a stage's results depend on, as an input file of its jobs.

Snakemake does not see the package behind a shell command. So a job reads a file below
``results/source`` with the digests of the modules that its stage can reach: of the syntax trees,
without docstrings, of the closure of its imports. The plan writes it if it has changed. An edit
reruns the stages that reach it; one of comments, docstrings or formatting, or one that is taken
back, reruns nothing.

The modules that count follow from stage and settings:

- Of the module with the stage's function, only what this function needs counts.
- What `settings` and `plan` compute is in the recipe and in the names of files, so they do not
  count; for stages whose results are about the plan itself, `plan` does.
- A module that implements a choice, or that some settings name in `uses`, counts only for the
  recipes that choose it, together with the class variables of the choice's settings.
- A package that finds its modules by name counts with the modules that the recipe chooses.
"""

import hashlib
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from fedstage.plan import syntax
from fedstage.plan.graph import Job
from fedstage.plan.members import parse_evaluated, parse_sampled
from fedstage.plan.results import RESULTS
from fedstage.plan.stages import STAGES, module_of
from fedstage.plan.syntax import PACKAGE, imports, module_digest, modules, parents
from fedstage.protocol.digests import digest

# Imported so that the classes of all choices are known before any fingerprint is computed.
from fedstage.settings import one_shot as _one_shot  # noqa: F401
from fedstage.settings.base import Choice, Settings, choices, subclasses
from fedstage.settings.data import DataOption
from fedstage.settings.registry import PLUGINS

DIGITS = 12  # hexadecimal, of the SHA-256 of a module

#: Modules and rooms that declare, and do not count.
DECLARING = ("fedstage", "fedstage.errors", "fedstage.settings", "fedstage.plan")


def chosen_modules(value: Any) -> Iterator[str]:
    """Yield the optional modules that settings and all settings in their fields need.

    Modules that read a data set are not among them: all that is read of it is in its files, whose
    own settings are a `DataOption`.
    """
    if isinstance(value, tuple):
        for part in value:
            yield from chosen_modules(part)
    if not isinstance(value, Settings):
        return
    if isinstance(value, Choice):
        yield value.implemented_in
    for key, info in type(value).model_fields.items():
        if not hasattr(value, key):
            continue  # of a configuration that is restricted to other settings
        own = getattr(value, key)
        if key in value.uses and own != info.default:
            yield f"fedstage.{value.uses[key]}"
        if key != "data" or isinstance(value, DataOption):
            yield from chosen_modules(own)


@cache
def optional_modules() -> frozenset[str]:
    """Return the modules that only some settings need."""
    used = {f"fedstage.{name}" for kind in subclasses(Settings) for name in kind.uses.values()}
    return frozenset(used.union(*(kind.modules() for kind in choices())))


@dataclass(frozen=True)
class Source:
    """A stage, and the optional modules that settings choose."""

    stage: str
    chosen: frozenset[str] = frozenset()

    @cached_property
    def file(self) -> str:
        """The file that lists the source; its name does not change with edits."""
        name = f"{self.stage}-{digest(sorted(self.chosen))}" if self.chosen else self.stage
        return f"{RESULTS}/source/{name}.json"

    def parts(self, package: Path = PACKAGE) -> dict[str, str]:
        """Return the digests of the modules that can be reached."""
        found = sorted(reachable(self, package))
        return {module: _digest(module, package) for module in found}


def digest_now(module: str, package: Path = PACKAGE) -> str | None:
    """Return the digest of a module, or of a part of it, None if there is none any more."""
    return _digest(module, package) if module.partition(":")[0] in modules(package) else None


def _digest(module: str, package: Path) -> str:
    text = module_digest(module, package) + _constants().get(module, "")
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


_PLAIN = (str, int, float, tuple, Mapping, Settings, type(None))


@cache
def _constants() -> dict[str, str]:
    """Return what classes of settings fix of alternatives, by the modules that implement these.

    Such class variables are in no recipe, as ``exchanges`` of a local trainer.
    """
    found: dict[str, str] = {}
    for kind in sorted(choices(), key=lambda kind: kind.__name__):
        names = sorted(kind.__class_vars__ - {"model_config"})
        values = ((name, getattr(kind, name)) for name in names)
        # The representation of others, such as properties, is another one in each process.
        fixed = {name: value for name, value in values if isinstance(value, _PLAIN)}
        for module in kind.modules():
            found[module] = f"{found.get(module, '')} {fixed}"
    return found


def changed_files(then: Mapping[str, str | None], now: Mapping[str, str | None]) -> list[str]:
    """Return the files, below the package's folder, of the modules of a source that differ."""
    differ = (module for module in {**then, **now} if then.get(module) != now.get(module))
    return sorted(module.partition(":")[0].replace(".", "/") + ".py" for module in differ)


@cache
def source_of_job(job: Job) -> Source:
    """Return the source behind the files of a job of the graph."""
    at = job.at
    return source_of(job.config, job.stage.name, at.get("evaluated"), at.get("members"))


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
    return Source(stage, frozenset().union(*map(chosen_modules, parts)))


def read_again() -> None:
    """Read the files again for the next fingerprints, without what functions have cached."""
    for module in (syntax, sys.modules[__name__]):
        for value in vars(module).values():
            if hasattr(value, "cache_clear"):
                value.cache_clear()


@cache
def reachable(of: Source, package: Path = PACKAGE) -> frozenset[str]:
    """Return the modules that can reach the results of a stage with these choices.

    Of the stage's own module it is the part that its function needs.
    """
    declaring = DECLARING[:-1] if STAGES[of.stage].about_plan else DECLARING
    unchosen = optional_modules() - of.chosen
    choosing = {f"fedstage.{kind.room}" for kind in choices()}  # packages
    waiting = {f"{module_of(of.stage)}:{of.stage}"}
    waiting |= parents(waiting)
    found: set[str] = set()
    while waiting:
        module = waiting.pop()
        if module in declaring or module.startswith(tuple(f"{room}." for room in declaring[1:])):
            continue
        found.add(module)
        edges = imports(module, package)
        if module not in optional_modules():
            edges -= unchosen
        if module in choosing:
            edges |= {name for name in of.chosen if module in _found_by(name)}
        waiting |= edges - found
    return frozenset(found)


def _found_by(module: str) -> frozenset[str]:
    """Return the packages that find the module of an alternative, by its name or as a plugin."""
    rooms = (f"fedstage.{room}" for room in PLUGINS.rooms_of(module))
    return frozenset((module.rpartition(".")[0], *rooms))
