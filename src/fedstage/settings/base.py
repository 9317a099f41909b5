"""What all settings have in common: bounds, strictness, and choices by name."""

import sys
from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar, Union, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    ValidationInfo,
    model_validator,
)
from pydantic_core import CoreSchema

from fedstage.settings.registry import PLUGINS

NAME = r"^[A-Za-z0-9_-]+$"
WEIGHTS_FILE = r"^results/[A-Za-z0-9_./=-]+\.safetensors$"
DEVICE = r"^(auto|cpu|cuda(:\d+)?)$"
SHA256 = r"^[0-9a-f]{8,64}$"
COMMIT = r"^[0-9a-f]{40}$"

#: What each pattern allows.
IN_WORDS = {
    NAME: "must consist of letters, digits, _ and -",
    WEIGHTS_FILE: "must be results/FILE.safetensors, of letters, digits, _, -, ., = and /",
    DEVICE: "must be auto, cpu, cuda or cuda:NUMBER",
    SHA256: "must be 8 to 64 hexadecimal digits, in lower case",
    COMMIT: "must be a commit, 40 hexadecimal digits in lower case",
}


#: Numbers of rounds, steps or samples; the upper bounds are far above practical values.
Positive = Annotated[int, Field(ge=1, le=10**9)]
Count = Annotated[int, Field(ge=0, le=10**9)]
#: Units, channels and other sizes of a layer, and numbers of layers of a network.
Width = Annotated[int, Field(ge=1, le=100_000)]
Layers = Annotated[int, Field(ge=1, le=1000)]
#: Numbers of clients and participants, each of which has its own files and jobs.
ClientCount = Annotated[int, Field(ge=1, le=10**6)]
#: Any integer of 64 bits, which is how tables store it.
Seed = Annotated[int, Field(ge=-(2**63), lt=2**63)]
Rate = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]
Fraction = Annotated[float, Field(ge=0, lt=1)]
Share = Annotated[float, Field(gt=0, le=1)]
Probability = Annotated[float, Field(ge=0, le=1)]


def _one_line(text: str) -> str:
    if not (text.strip() and text.isprintable()):
        raise ValueError(f"{text!r}: must be one line of printable characters, and not empty")
    return text


#: A line of text that tables and figures show.
Line = Annotated[str, AfterValidator(_one_line)]
#: A file of weights below the working folder; its name identifies everything that determines it.
WeightsFile = Annotated[str, Field(pattern=WEIGHTS_FILE)]
#: How images are changed at random; see `fedstage.training.images.draw`.
Augmentation = Literal["none", "flip", "crop", "crop_flip"]
Name = Annotated[str, Field(pattern=NAME)]  # may be part of a file name and of a command

#: Settings whose value is a choice; merging replaces the old choice if the names differ.
CHOICES = frozenset(
    {
        "data",
        "of",
        "encoder",
        "public",
        "partition",
        "model",
        "architectures",  # several of them
        "local",
        "compression",
        "server_optimizer",
        "rule",
        "staleness",
        "discount",
        "ensemble",
        "global",
        "evaluate",
        "schedule",
        "loss",
        "aggregator",
        "members",
        "outliers",
        "aggregator_training",
        "generator",
        "distillation",
        "student",
        "quantisation",
    }
)


#: Functions or classes by name, with their arguments, which are passed by position.
Functions = Mapping[str, tuple[str, ...]]

#: The context for reading settings that were checked when the graph was built.
RESTRICTED = "restricted"


class Settings(BaseModel):
    """Base of all settings: frozen, strict about types, without unknown keys.

    `uses` maps a field to a module that is needed only if the field differs from its default.
    `package` is a package that the implementation imports and an extra installs; see
    `fedstage.execution.requirements`.
    """

    uses: ClassVar[Mapping[str, str]] = {}
    package: ClassVar[str | None] = None

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        defer_build=True,
    )

    @model_validator(mode="after")
    def _check(self, info: ValidationInfo) -> Self:
        if info.context == RESTRICTED:
            return self
        completed = self._completed()
        for fault in completed._faults():
            raise ValueError(fault)
        return completed

    def _completed(self) -> Self:
        """Return these settings, with omitted ones filled in where others imply them."""
        return self

    def _faults(self) -> Iterator[str]:
        """Yield what is wrong with the combination of fields; only the first fault is reported."""
        yield from ()

    @cached_property
    def _field_hash(self) -> int:
        return hash(tuple(self.__dict__.get(name) for name in type(self).model_fields))

    def __hash__(self) -> int:
        """Return the hash of the fields, computed once: large graphs need it a million times."""
        return self._field_hash

    def __eq__(self, other: object) -> bool:
        """Whether all fields are equal; identity and cached hashes are compared first."""
        if self is other:
            return True
        if isinstance(other, Settings):
            hashes = [settings.__dict__.get("_field_hash") for settings in (self, other)]
            if None not in hashes and hashes[0] != hashes[1]:
                return False
        return super().__eq__(other)

    def __copy__(self) -> Self:
        """Return a copy without the cached hash, because `model_copy` then changes its fields."""
        copied = super().__copy__()
        copied.__dict__.pop("_field_hash", None)
        return copied


class Choice(Settings):
    """An alternative, chosen by its name, such as a model or a local trainer.

    `room` is the package, below `fedstage`, that implements this kind. `module` is the
    alternative's module there; by default it has the alternative's name. A plugin implements its
    alternatives in the module of their settings. `functions` lists what a module of this kind must
    define. `declared` lists what the settings must declare if a class of that module overrides a
    hook.
    """

    room: ClassVar[str]
    module: ClassVar[str] = ""
    functions: ClassVar[Functions] = {}
    declared: ClassVar[Mapping[str, str]] = {}
    name: str

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of the alternatives that this class describes."""
        return get_args(cls.model_fields["name"].annotation)

    @classmethod
    def modules(cls) -> tuple[str, ...]:
        """Return the modules that implement the alternatives of this class."""
        return tuple(cls._implementing(name) for name in cls.names())

    @property
    def implemented_in(self) -> str:
        """The module that implements this alternative."""
        return self._implementing(self.name)

    @classmethod
    def _implementing(cls, name: str) -> str:
        if cls.__module__ in PLUGINS.files:
            return cls.__module__
        return f"fedstage.{cls.room}.{cls.module or name}"


def alternatives(union: Any) -> tuple[type[Choice], ...]:
    """Return the classes of a union of choices, such as `LocalTrainer`."""
    return with_plugins(get_args(get_args(union)[0]))


def with_plugins(kinds: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the classes of a union, and the classes that plugins add to the same rooms."""
    choices = (kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Choice))
    return (*kinds, *PLUGINS.of_rooms({kind.room for kind in choices}))


def implementation(choice: Choice) -> ModuleType:
    """Import and return the module that implements an alternative."""
    return import_module(choice.implemented_in)


def called(choice: Choice, key: str) -> str:
    """Return how messages name an alternative: ``mine/x.py: x`` of a plugin, else ``key = x``."""
    file = PLUGINS.files.get(choice.implemented_in)
    return f"{file}: {choice.name}" if file else f"{key} = {choice.name}"


def is_plugin(choice: Choice) -> bool:
    """Whether a plugin implements an alternative."""
    return choice.implemented_in in PLUGINS.files


def subclasses(kind: type[Settings]) -> Iterator[type[Settings]]:
    """Yield all imported subclasses of a settings class."""
    for below in kind.__subclasses__():
        yield below
        yield from subclasses(below)


def choices() -> Iterator[type[Choice]]:
    """Yield the classes of named alternatives, except where their modules were unloaded."""
    for kind in subclasses(Choice):
        home = sys.modules.get(kind.__module__)
        if issubclass(kind, Choice) and kind.names() and getattr(home, kind.__name__, 0) is kind:
            yield kind


def expand_choice(value: Any) -> Any:
    """Expand a short form: ``a`` to ``{name: a}``, ``{a: {b: 1}}`` to ``{name: a, b: 1}``."""
    if isinstance(value, str):
        return {"name": value}
    if isinstance(value, Mapping) and "name" not in value and len(value) == 1:
        ((name, settings),) = value.items()
        if isinstance(settings, Mapping) or settings is None:
            return {"name": name, **(settings or {})}
    return value


class _WithPlugins:
    """Adds the alternatives of plugins to a union when its schema is built."""

    def __get_pydantic_core_schema__(self, union: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return handler(Union[with_plugins(get_args(union))])  # noqa: UP007


T = TypeVar("T")

#: A union of choices by their `name`, in full or in short form: ``ByName[FedAvg | FedProx]``.
ByName = Annotated[T, Field(discriminator="name"), BeforeValidator(expand_choice), _WithPlugins()]
