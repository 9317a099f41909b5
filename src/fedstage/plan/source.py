"""Fingerprints of the source that a stage's results depend on: the params `source` of rules.

Snakemake reruns a rule if its shell command or params change, but does not see the package behind
the command. So each rule has in its params a digest of the modules that its stage can reach: the
closure of its imports, of each module the syntax tree without docstrings. An edit reruns the stages
that reach it; an edit of comments, docstrings or formatting reruns nothing.

The modules that count follow from folders and settings:

- Modules of `settings` and `plan` do not count: they reach results through line.yaml, params, and
  names of files. For stages whose results are about the plan itself, `plan` counts.
- A module that implements a choice, or that `uses` of some settings names, counts for the lines
  that choose it, and for no other line.
- A package that finds its modules by name is reached with those that the line chooses.
"""

import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from fedstage.plan.members import parse_evaluated, parse_sampled
from fedstage.plan.sharing import caches_labels, exchanges_features, hears_server, speaks
from fedstage.plan.stages import STAGES
from fedstage.plan.syntax import PACKAGE, imports, module_digest, parents

# Imported so that the classes of all choices are known, whoever asks for a fingerprint.
from fedstage.settings import one_shot as _one_shot  # noqa: F401
from fedstage.settings.base import Choice, Settings, subclasses
from fedstage.settings.lines import Line

#: Modules, and rooms, that reach a result only through its settings, its folder's name, or the
#: params and inputs of its rule. Nothing that computes may be put there.
DECLARING = (
    "fedstage.errors",
    "fedstage.settings",
    "fedstage.plan",
    "fedstage.plan.stages",
    "fedstage.stages",
)


def chosen_modules(settings: Settings) -> frozenset[str]:
    """Return the optional modules that these settings need."""
    return frozenset(f"fedstage.{name}" for name in _chosen(settings))


def _chosen(value: Any) -> Iterator[str]:
    if isinstance(value, tuple):
        for part in value:
            yield from _chosen(part)
    if not isinstance(value, Settings):
        return
    if isinstance(value, Choice):
        yield value.implemented_in
    fields = type(value).model_fields
    yield from (
        module for key, module in value.uses.items() if getattr(value, key) != fields[key].default
    )
    for key in fields:
        yield from _chosen(getattr(value, key))


@cache
def optional_modules() -> frozenset[str]:
    """Return the modules that only some settings need."""
    used = {name for kind in subclasses(Settings) for name in kind.uses.values()}
    named = {name for kind in _choices() for name in kind.modules()}
    return frozenset(f"fedstage.{name}" for name in used | named)


@cache
def choice_rooms() -> frozenset[str]:
    """Return the packages that find the modules of alternatives by name."""
    return frozenset(f"fedstage.{kind.room}" for kind in _choices())


def _choices() -> Iterator[type[Choice]]:
    """Yield the classes of alternatives, each with a name and a module."""
    for kind in subclasses(Choice):
        if issubclass(kind, Choice) and kind.names():
            yield kind


@cache
def source_of(
    settings: Settings, stage: str, evaluated: str | None = None, members: str | None = None
) -> str:
    """Return the fingerprint that the rule of a stage carries for a line or other settings.

    The rounds of a line may be made by jobs of one stage each or by segments, and a run may be
    continued in the other way: so all their rules carry the fingerprint of the segment. This reruns
    hardly more: files of a distilled line follow from a student, and of another line only the first
    updates do not follow from an aggregation.

    `evaluated` is ``global_model`` or the name of a scored ensemble, `members` a kind of members
    whose logits are computed.
    """
    job = next((name for name, one in STAGES.items() if stage in one.calls), stage)
    if job == "logits_segment" and _speaks(settings):
        job = "segment"  # which computes its teachers' logits itself
    chosen = chosen_modules(settings)
    if evaluated not in (None, "global_model"):
        chosen |= chosen_modules(parse_evaluated(str(evaluated)))
    drawn = None if members is None else parse_sampled(members)
    if drawn is not None:
        chosen |= chosen_modules(drawn)
    return stage_fingerprint(job, chosen, called(job, settings))


def called(stage: str, settings: Settings) -> tuple[str, ...]:
    """Return the stages that a stage calls for a line; segments call what the line needs."""
    calls = STAGES[stage].calls
    if stage != "segment":
        return calls
    if not (isinstance(settings, Line) and settings.head_transfer):
        calls = tuple(name for name in calls if name != "head_transfer")
    if not (isinstance(settings, Line) and exchanges_features(settings)):
        calls = tuple(name for name in calls if name != "feature_training")
    if not (isinstance(settings, Line) and caches_labels(settings)):
        calls = tuple(name for name in calls if name != "cached_labels")
    if not (isinstance(settings, Line) and hears_server(settings)):
        calls = tuple(name for name in calls if name != "selected_labels")
    if not _is_distilled(settings):
        calls = tuple(name for name in calls if name != "distillation")
    return ("logits", *calls) if _speaks(settings) else calls


def _speaks(settings: Settings) -> bool:
    return isinstance(settings, Line) and speaks(settings)


def _is_distilled(settings: Settings) -> bool:
    return isinstance(settings, Line) and settings.global_trainer is not None


@cache
def stage_fingerprint(
    stage: str,
    chosen: frozenset[str] = frozenset(),
    calls: tuple[str, ...] = (),
    package: Path = PACKAGE,
) -> str:
    """Return 12 hexadecimal digits that change with the code that a stage can reach.

    `chosen` are the modules of `chosen_modules`, `calls` further stages that the stage calls.
    """
    digest = hashlib.sha256()
    for module in sorted(reachable(stage, chosen, calls, package)):
        digest.update(f"{module} {module_digest(module, package)}\n".encode())
    return digest.hexdigest()[:12]


def reachable(
    stage: str,
    chosen: frozenset[str] = frozenset(),
    calls: tuple[str, ...] = (),
    package: Path = PACKAGE,
) -> frozenset[str]:
    """Return the modules whose code can reach the results of a stage with these choices."""
    about_plan = stage in STAGES and STAGES[stage].about_plan
    declaring = tuple(name for name in DECLARING if not (about_plan and name == "fedstage.plan"))
    waiting = {f"fedstage.stages.{name}" for name in (stage, *calls)}
    waiting |= parents(waiting) - {"fedstage"} - set(declaring)
    found: set[str] = set()
    while waiting:
        module = waiting.pop()
        found.add(module)
        edges = set(imports(module, package))
        if module not in optional_modules():
            edges -= optional_modules() - chosen
        if module in choice_rooms():
            edges |= {name for name in chosen if name.rpartition(".")[0] == module}
        waiting |= {name for name in edges if not _declares(name, declaring)} - found
    return frozenset(found)


def _declares(module: str, declaring: tuple[str, ...]) -> bool:
    """Whether a module lies in a declaring room; modules of stages never do."""
    if module == "fedstage":
        return True
    if module.startswith("fedstage.stages."):
        return False
    return any(module == name or module.startswith(f"{name}.") for name in declaring)
