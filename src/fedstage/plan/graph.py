"""The graph: the inputs of each file, and its place, derived from declarations of stages.

A `Stage` declares once which files it makes, from which files and settings. The rest follows:

- A file *reaches* the settings that its stage reads and the settings that its inputs reach.
- Its *owner* is the run's configuration restricted to these settings, and its folder is named after
  the owner. So runs that differ in nothing that reaches a file share the file.
- Edges are the inputs; the job behind a path is found in an index of all files that were named.

Two files have the same path if and only if everything that they are made from is the same. One file
because stages, jobs and restricted configurations are defined by one another.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, fields
from functools import cache, cached_property
from inspect import signature
from operator import attrgetter
from types import ModuleType
from typing import Any, TypeVar, get_origin

from fedstage.plan.inputs import Inputs
from fedstage.plan.results import RESULTS
from fedstage.protocol.digests import canonical, digest
from fedstage.settings.base import Settings
from fedstage.settings.equivalences import simplest

T = TypeVar("T")

#: The values of a job's place, such as its round and group.
Place = tuple[Any, ...]


class File(str):
    """The path of a file, with the job that makes it and the option of its stage."""

    __slots__ = ("job", "output")
    job: "Job"
    output: str


@dataclass(frozen=True)
class Folder:
    """Files below ``results/NAME/CONFIGURATION``, all of which depend on the settings in `reads`.

    These are in the folder's ``recipe.yaml``, which all of its stages read; by default all settings
    of the class, `kind`. `label` gives the readable beginning of a configuration's name, which ends
    in a digest of the settings, or of their `identity`; for an identity of None there is no digest.
    `pattern` is the name with Snakemake's wildcards.
    """

    name: str
    kind: Any
    label: Callable[[Any], str]
    reads: Callable[[Any], Iterable[str]] = lambda config: type(config).model_fields
    identity: Callable[[Any], Any] = canonical
    pattern: str = "{recipe}"


def declared(module: ModuleType) -> tuple["Stage", ...]:
    """Return the stages that a module declares, in its order."""
    stages = (value for value in vars(module).values() if isinstance(value, Stage))
    return tuple(stage for stage in stages if stage.inputs.__module__ == module.__name__)


def always(config: Any) -> bool:
    """Return True, for all configurations alike."""
    return True


def never(config: Any) -> bool:
    """Return False, for all configurations alike."""
    return False


@dataclass(eq=False, kw_only=True)
class Command:
    """The common part of stages: a rule and a function of one name, which `fedstage run` calls.

    Attributes
    ----------
    outputs : mapping of str to str
        Names of the files that it makes, by option; the first is the main one.
    on_device : callable
        Whether it computes on the device of a configuration.
    about_plan : bool
        Whether its results are about the graph, and so depend on the code of `fedstage.plan`.
    module : str
        The module of its function, below `fedstage.stages`; by default that of its name.
    """

    name: str = ""
    outputs: Mapping[str, str] = field(default_factory=dict)
    on_device: Callable[[Any], bool] = never
    about_plan: bool = False
    module: str = ""


@dataclass(eq=False, kw_only=True)
class Stage(Command):
    """A stage: the files that it makes in a place, and what it makes them from.

    It is declared by decorating the function `inputs`, which gives its name: ``@partial(Stage,
    folder=..., outputs=...)``. The names in `outputs` are below the folder, with the place in
    braces.

    Attributes
    ----------
    inputs : callable
        Maps a configuration and the values of a place to the files that are read, by option.
    below : str
        What the names in `outputs` begin with.
    reads : callable
        The settings, such as ``server`` or ``aggregation.rule``, on which the files depend, in
        addition to the settings of the folder and of the inputs.
    used : callable
        Whether a configuration has such files.
    made : callable, optional
        Which outputs a configuration has; by default all.
    temporary : tuple of str
        Outputs that are deleted when no job reads them any more, unless a target asks for them.
    alike : callable
        Maps a configuration and place to a place whose job reads the same files.
    settled : callable
        Maps a configuration and place to an earlier place whose files reach the same settings.
    several : bool
        Whether the function makes the files of several participants, who may share a GPU.
    private : bool or None
        Whether its files are of a single client alone; None for what the server runs.
    about : str
        What it does: the first line about `inputs`.
    """

    inputs: Callable[..., Inputs[str]] = field(kw_only=False)
    folder: Folder
    below: str = ""
    on_device: Callable[[Any], bool] = always
    reads: Callable[..., Iterable[str]] = lambda config, *place: ()
    used: Callable[[Any], bool] = always
    made: Callable[[Any], Iterable[str]] | None = None
    temporary: tuple[str, ...] = ()
    alike: Callable[..., Place] = lambda config, *place: place
    settled: Callable[..., Place] = lambda config, *place: place
    several: bool = False
    private: bool | None = None
    about: str = field(init=False)

    def __post_init__(self) -> None:
        """Take the name and the description of the function, and complete the files' names."""
        self.name = self.inputs.__name__
        self.outputs = {option: self.below + file for option, file in self.outputs.items()}
        first = (self.inputs.__doc__ or "").partition("\n")[0].removesuffix(".")
        self.about = first[:1].lower() + first[1:]

    @cached_property
    def place(self) -> tuple[str, ...]:
        """The names of a place's values: the parameters of `inputs` after the configuration."""
        return tuple(name.rstrip("_") for name in signature(self.inputs).parameters)[1:]

    @property
    def options(self) -> tuple[str, ...]:
        """The names of its inputs, from their class, after the recipe."""
        returned: Any = self.inputs.__annotations__["return"]
        return ("recipe", *(option.name for option in fields(get_origin(returned))))

    def __call__(self, config: Any, *place: Any, output: str | None = None) -> File:
        """Return a file that the stage makes in a place, by default its main one."""
        files = self.job(config, *place).files
        return next(iter(files.values())) if output is None else files[output]

    def job(self, config: Any, *place: Any) -> "Job":
        """Return the job that makes the files of a place: the same for all that share it."""
        return _job(self, config if config in _OWNED else simplest(config), place)


#: All files that were named, by their paths.
_FILES: dict[str, File] = {}


class Job:
    """A stage in a place of the configuration that owns its files."""

    def __init__(self, stage: Stage, config: Any, place: Place, reached: frozenset[str]) -> None:
        self.stage, self.config, self.place, self.reached = stage, config, place, reached
        self.folder = folder_of(stage.folder, config)

    @cached_property
    def files(self) -> dict[str, File]:
        """The files that the job makes, by option."""
        stage = self.stage
        made = stage.outputs if stage.made is None else stage.made(self.config)
        return {name: self._file(name) for name in made}

    def _file(self, output: str) -> File:
        file = File(f"{self.folder}/{self.stage.outputs[output].format(**self.at)}")
        file.job, file.output = self, output
        return _FILES.setdefault(file, file)

    @cached_property
    def alike(self) -> "Job":
        """The job that is looked at for all that read the same files; perhaps this one."""
        place = self.stage.alike(self.config, *self.place)
        return self if place == self.place else self.stage.job(self.config, *place)

    @cached_property
    def inputs(self) -> dict[str, str | Sequence[str]]:
        """The files that the job reads, by option, an empty list where there are none."""
        if self.alike is not self:
            return self.alike.inputs
        files = {name: files or [] for name, files in vars(self.read).items()}
        return {"recipe": recipe_file(self.folder)} | files

    @cached_property
    def read(self) -> Inputs[str]:
        """The files that the stage's function takes."""
        return self.stage.inputs(self.config, *self.place)

    @cached_property
    def at(self) -> dict[str, Any]:
        """The values of the place by name."""
        return dict(zip(self.stage.place, self.place, strict=True))

    @cached_property
    def before(self) -> tuple["Job", ...]:
        """The jobs whose files this one reads, each once."""
        if self.alike is not self:
            return self.alike.before
        return tuple(dict.fromkeys(file.job for file in files_in(self.inputs)))

    def __repr__(self) -> str:
        return f"<{self.stage.name} {self.folder} {self.place}>"


@cache
def _job(stage: Stage, config: Any, place: Place) -> Job:
    reached = reach(stage, config, place)
    owner = restricted(config, reached)
    return Job(stage, owner, place, reached) if owner is config else _job(stage, owner, place)


def listed(files: str | Sequence[str] | None) -> Sequence[str]:
    """Return one file, several or none as a list."""
    if files is None:
        return []
    return [files] if isinstance(files, str) else files


def files_in(inputs: Mapping[str, str | Sequence[str] | None]) -> Iterator[File]:
    """Yield the files of the graph among inputs."""
    for files in inputs.values():
        yield from (file for file in listed(files) if isinstance(file, File))


def reach(stage: Stage, config: Any, place: Place) -> frozenset[str]:
    """Return the settings on which the files of a place depend, by themselves or by their inputs.

    The configuration is in its simplest form, as required of those that own files.
    Settings of an input whose configuration is of another class, such as a partition, do not count:
    the folder declares the settings from which that configuration is derived.
    """
    return _reach(stage, config, stage.settled(config, *stage.alike(config, *place)))


@cache
def _reach(stage: Stage, config: Any, place: Place) -> frozenset[str]:
    known = type(config).model_fields
    jobs = (file.job for file in files_in(vars(stage.inputs(config, *place))))
    behind = {job.reached for job in jobs if type(job.config) is type(config)}
    passed = (name for names in behind for name in names if name.partition(".")[0] in known)
    return frozenset((*stage.folder.reads(config), *stage.reads(config, *place), *passed))


@cache
def folder_of(folder: Folder, config: Any) -> str:
    """Return the folder of a configuration that owns files."""
    content = folder.identity(config)
    path = f"{RESULTS}/{folder.name}/{folder.label(config)}"
    return path if content is None else f"{path}-{digest(content)}"


def name_of(file: File) -> str:
    """Return the name of a file's folder, which may contain a digest of its settings."""
    return file.job.folder.rpartition("/")[2]


def found_file(path: str) -> str:
    """Return the file of a path, with its job if it was named before."""
    return _FILES.get(path, path)


def recipe_file(folder: str) -> str:
    """Return the file of a folder's settings."""
    return f"{folder}/recipe.yaml"


def find_job(stages: Iterable[Stage], config: Any, path: str) -> Job | None:
    """Return the job of one of `stages` that makes a file of a configuration, if there is one."""
    for stage in filter(lambda stage: stage.used(config), stages):
        folder = folder_of(stage.folder, config)
        for output, name in stage.outputs.items():
            pattern = re.sub(r"\\{(\w+)[^}]*\\}", r"(?P<\1>.+)", re.escape(f"{folder}/{name}"))
            if found := re.fullmatch(pattern, path):
                place = (place_value(found[key]) for key in stage.place)
                job = stage.job(config, *place)
                return job if job.files.get(output) == path else None
    return None


def place_value(text: str) -> int | str:
    """Return a value of a place from its text in a path."""
    return int(text) if text.isdecimal() else text


def behind(
    files: Iterable[str],
    belongs: Callable[[Job], bool] = always,
    before: Callable[[Job], Iterable[Job]] = attrgetter("before"),
) -> list[Job]:
    """Return the jobs behind files that `belong`, each once and after those behind it.

    Jobs behind one that does not belong are not searched. `before` gives the jobs that a job waits
    for, by default all.
    """
    found: dict[Job, None] = {}
    waiting = [file.job for file in files if isinstance(file, File)][::-1]
    while waiting:
        job = waiting[-1]
        if job in found or not belongs(job):
            waiting.pop()
            continue
        new = [other for other in before(job) if other not in found and belongs(other)]
        if new:
            waiting.extend(reversed(new))
        else:
            found[waiting.pop()] = None
    return list(found)


# --- configurations restricted to some of their settings, which own files -----------------------

#: Configurations that own files, in their simplest form; equal ones are the same object.
_OWNED: dict[Any, Any] = {}


def interned(config: T) -> T:
    """Return the one object for equal configurations that own files, so that look-ups are fast."""
    found: T = _OWNED.setdefault(config, config)
    return found


@cache
def restricted(config: Any, names: frozenset[str]) -> Any:
    """Return a configuration with some of its settings; others are at their defaults, or absent."""
    fields = config.__dict__.keys() & type(config).model_fields.keys()
    kept = {name: getattr(config, name) for name in names & fields}
    for name, parts in _parts_of(names).items():
        kept[name] = _with_defaults(getattr(config, name), parts)
    found = type(config).model_construct(**kept)
    return interned(config if found == config else found)


def _with_defaults(settings: Settings | None, read: set[str]) -> Settings | None:
    """Return settings whose fields, nested ones included, are at their defaults unless read."""
    if settings is None:
        return None
    unread = {
        name: info.default
        for name, info in type(settings).model_fields.items()
        if name not in read and not info.is_required()
    }
    for name, parts in _parts_of(read).items():
        unread[name] = _with_defaults(getattr(settings, name), parts)
    return settings.model_copy(update=unread)


def _parts_of(names: Set[str]) -> dict[str, set[str]]:
    """Return the named parts of each field that is not named as a whole."""
    parts: dict[str, set[str]] = {}
    for name in names:
        field_name, _, part = name.partition(".")
        if part and field_name not in names:
            parts.setdefault(field_name, set()).add(part)
    return parts
