"""The graph: what a file is made from, and where it lies, derived from declarations of stages.

A `Stage` declares once which files it makes, from which files, by which settings. The rest follows:

- A file *reaches* the settings that its stage reads and those that its inputs reach.
- Its *owner* is the run's configuration restricted to these settings, and its folder is named after
  the owner. So runs that differ in nothing that reaches a file share the file.
- Edges are the inputs; what is behind a path is the job in the index of all files that were named.

Two files lie in one place exactly if all that they are made from is the same.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

from fedstage.plan.digests import canonical, digest
from fedstage.plan.results import RESULTS
from fedstage.settings.base import Settings
from fedstage.settings.equivalences import simplest

#: The values of a job's place, such as its round and group.
Place = tuple[Any, ...]
#: Files by the option of the stage that reads or makes them.
Files = Mapping[str, str | Sequence[str] | None]


class File(str):
    """The path of a file, with the job that makes it and the option of its stage."""

    __slots__ = ("job", "output")
    job: "Job"
    output: str


@dataclass(frozen=True)
class Folder:
    """Files below ``results/NAME/CONFIGURATION``, all of which depend on the settings in `reads`.

    `label` gives the readable beginning of a configuration's name, `kind` the class of its
    settings. With a `line` its settings lie in it, in a file that all of its stages read.
    """

    name: str
    kind: Any
    label: Callable[[Any], str]
    reads: Callable[[Any], Iterable[str]] | None = None  # None: all settings of the class
    line: bool = True


@dataclass(frozen=True, eq=False)
class Stage:
    """A stage: the files that it makes in a place, and what it makes them from.

    Attributes
    ----------
    outputs : mapping of str to str
        Names of files below the folder, with the place in braces, by option; the first is the main
        one.
    place : tuple of str
        The names of a place's values.
    inputs : callable
        From a configuration and place to the files that are read, by option: one, a list or None.
    reads : callable, optional
        The settings, such as ``server`` or ``aggregation.rule``, on which the files depend beside
        those of the folder and of the inputs.
    made : callable, optional
        Which outputs there are; by default all.
    alike : callable, optional
        From a configuration and place to a place whose job reads the same files.
    """

    name: str
    folder: Folder
    outputs: Mapping[str, str]
    inputs: Callable[..., Files]
    place: tuple[str, ...] = ()
    reads: Callable[..., Iterable[str]] = field(default=lambda config, *place: ())
    made: Callable[..., Iterable[str]] | None = None
    alike: Callable[..., Place] = field(default=lambda config, *place: place)

    def __call__(self, config: Any, *place: Any, output: str | None = None) -> File:
        """Return a file that the stage makes in a place, by default its main one."""
        files = self.job(config, *place).files
        return next(iter(files.values())) if output is None else files[output]

    def job(self, config: Any, *place: Any) -> "Job":
        """Return the job that makes the files of a place: the same for all that share it."""
        key = (self, config, place)
        found = _JOBS.get(key)
        if found is None:
            reached = reach(self, config, place)
            owner = restricted(_simple(config), reached)
            found = _JOBS.setdefault((self, owner, place), Job(self, owner, place, reached))
            _REACH.setdefault((self, owner, self.alike(owner, *place)), reached)
            _JOBS[key] = found
        return found


_JOBS: dict[tuple[Stage, Any, Place], "Job"] = {}
_REACH: dict[tuple[Stage, Any, Place], frozenset[str]] = {}
#: Configurations that own files, which are in their simplest form: of equal ones always the same.
_OWNED: dict[Any, Any] = {}


class Job:
    """A stage in a place of the configuration that owns its files."""

    def __init__(self, stage: Stage, config: Any, place: Place, reached: frozenset[str]) -> None:
        self.stage, self.config, self.place, self.reached = stage, config, place, reached
        self.folder = folder_of(stage.folder, config)

    @cached_property
    def files(self) -> dict[str, File]:
        """The files that the job makes, by option."""
        stage = self.stage
        made = stage.outputs if stage.made is None else stage.made(self.config, *self.place)
        return {name: self._file(name) for name in made}

    def _file(self, output: str) -> File:
        named = dict(zip(self.stage.place, self.place, strict=True))
        file = File(f"{self.folder}/{self.stage.outputs[output].format(**named)}")
        file.job, file.output = self, output
        return file

    @cached_property
    def inputs(self) -> dict[str, str | Sequence[str]]:
        """The files that the job reads, by option, an empty list where there are none."""
        alike = self.stage.alike(self.config, *self.place)
        if alike != self.place:
            return self.stage.job(self.config, *alike).inputs
        read = self.stage.inputs(self.config, *self.place)
        line: dict[str, Any] = {"line": line_file(self.folder)} if self.stage.folder.line else {}
        return {name: files or [] for name, files in (line | dict(read)).items()}

    @cached_property
    def at(self) -> dict[str, Any]:
        """The values of the place by name."""
        return dict(zip(self.stage.place, self.place, strict=True))

    @cached_property
    def before(self) -> tuple["Job", ...]:
        """The jobs whose files this one reads, each once."""
        alike = self.stage.alike(self.config, *self.place)
        if alike != self.place:
            return self.stage.job(self.config, *alike).before
        read = (file for files in self.inputs.values() for file in listed(files))
        return tuple(dict.fromkeys(file.job for file in read if isinstance(file, File)))

    def __repr__(self) -> str:
        return f"<{self.stage.name} {self.folder} {self.place}>"


def listed(files: str | Sequence[str] | None) -> Sequence[str]:
    """Return one file, several or none as a list."""
    if files is None:
        return []
    return [files] if isinstance(files, str) else files


def reach(stage: Stage, config: Any, place: Place) -> frozenset[str]:
    """Return the settings on which the files of a place depend, by themselves or by their inputs.

    Of an input whose configuration is of another class only the settings count that have the same
    names; of what else it was derived from, such as a data set, the folder declares the settings.
    """
    place = stage.alike(config, *place)
    key = (stage, config, place)
    if key not in _REACH:
        simple = _simple(config)
        folder = stage.folder
        fields = type(simple).model_fields
        own = fields if folder.reads is None else folder.reads(simple)
        read = (file for files in stage.inputs(simple, *place).values() for file in listed(files))
        behind = {file.job.reached for file in read if isinstance(file, File)}
        own = frozenset((*own, *stage.reads(simple, *place)))
        _REACH[key] = _united(own, frozenset(behind), frozenset(fields))
    return _REACH[key]


@cache
def _united(
    own: frozenset[str], behind: frozenset[frozenset[str]], fields: frozenset[str]
) -> frozenset[str]:
    """Return a stage's own settings and those behind its inputs that its configuration has."""
    passed = (name for names in behind for name in names)
    return own.union(name for name in passed if name.partition(".")[0] in fields)


@cache
def restricted(config: Any, names: frozenset[str]) -> Any:
    """Return a configuration with some of its settings; others are at their defaults, or absent."""
    whole = {name for name in names if "." not in name}
    kept = {name: value for name, value in config.__dict__.items()
            if name in whole and name in type(config).model_fields}  # fmt: skip
    parts: dict[str, set[str]] = {}
    for name in names:
        field_name, _, part = name.partition(".")
        if part and field_name not in whole:
            parts.setdefault(field_name, {"name"}).add(part)
    for field_name, read in parts.items():
        kept[field_name] = _with_defaults(getattr(config, field_name), read)
    found = type(config).model_construct(**kept)
    return _OWNED.setdefault(found, config if found == config else found)


def _with_defaults(settings: Settings | None, read: set[str]) -> Settings | None:
    """Return settings whose fields are at their defaults unless they are read."""
    if settings is None:
        return None
    unread = {
        name: info.default
        for name, info in type(settings).model_fields.items()
        if name not in read and not info.is_required()
    }
    return settings.model_copy(update=unread)


@cache
def folder_of(folder: Folder, config: Any) -> str:
    """Return the folder of a configuration that owns files."""
    return f"{RESULTS}/{folder.name}/{folder.label(config)}-{digest(canonical(config))}"


def line_file(folder: str) -> str:
    """Return the file of a folder's settings."""
    return f"{folder}/line.yaml"


def find_job(stages: Iterable[Stage], config: Any, path: str) -> Job | None:
    """Return the job of one of `stages` that makes a file of a configuration, if there is one."""
    for stage in stages:
        folder = folder_of(stage.folder, config)
        for output, name in stage.outputs.items():
            pattern = re.sub(r"\\{(\w+)[^}]*\\}", r"(?P<\1>.+)", re.escape(f"{folder}/{name}"))
            if found := re.fullmatch(pattern, path):
                place = (_value(found[key]) for key in stage.place)
                job = stage.job(config, *place)
                return job if job.files.get(output) == path else None
    return None


def _value(text: str) -> int | str:
    return int(text) if text.isdecimal() else text


def behind(*files: str) -> dict[str, Any]:
    """Return the configuration of each folder that has one of these files, or one behind them."""
    waiting = [file.job for file in files if isinstance(file, File)]
    seen = set(waiting)
    found: dict[str, Any] = {}
    while waiting:
        job = waiting.pop()
        found[job.folder] = job.config
        new = set(job.before) - seen
        seen |= new
        waiting.extend(new)
    return found


def _simple(config: Any) -> Any:
    return config if config in _OWNED else simplest(config)
