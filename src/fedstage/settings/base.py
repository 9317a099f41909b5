"""What all settings share: bounds, strictness, and choices by name."""

import sys
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
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

from fedstage.settings.patterns import NAME, WEIGHTS_FILE
from fedstage.settings.registry import PLUGINS
from fedstage.settings.traits import Lacks, Needs, Part

#: Numbers of rounds, steps, samples; the bounds are far above what anybody waits for.
Positive = Annotated[int, Field(ge=1, le=10**9)]
Count = Annotated[int, Field(ge=0, le=10**9)]
#: Units, channels and other numbers of a layer, and layers of a network.
Width = Annotated[int, Field(ge=1, le=100_000)]
Layers = Annotated[int, Field(ge=1, le=1000)]
#: Clients and participants, each with files and jobs of its own.
ClientCount = Annotated[int, Field(ge=1, le=10**6)]
#: Any number that fits into 64 bits, as tables have it.
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


#: What tables and figures show.
Line = Annotated[str, AfterValidator(_one_line)]
#: A file of weights below the working folder; its name identifies all that determines it.
WeightsFile = Annotated[str, Field(pattern=WEIGHTS_FILE)]
#: How images are changed at random: `fedstage.training.images.draw`.
Augmentation = Literal["none", "flip", "crop", "crop_flip"]
Name = Annotated[str, Field(pattern=NAME)]  # may be part of a file's name, and of a command

#: Settings whose value is a choice; merging replaces them where the name differs.
CHOICES = frozenset(
    {
        "data",
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

#: The context in which settings are read that were checked when the graph was built.
RESTRICTED = "restricted"


class Settings(BaseModel):
    """Base of all settings: frozen, strict about types, without unknown keys.

    `uses` maps a field to the module that is needed only if the field is not at its default. What
    `needs` and `lacks` declare is in `fedstage.settings.traits`; base classes declare theirs, too.
    `package` is one that the code behind them imports and that an extra installs, see
    `fedstage.settings.packages`.
    """

    uses: ClassVar[Mapping[str, str]] = {}
    needs: ClassVar[Needs] = {}
    lacks: ClassVar[Lacks] = {}
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
        """Return these settings with what some of them imply for others that were left out."""
        return self

    def _faults(self) -> Iterator[str]:
        """Yield what is wrong with the fields together; only the first is reported."""
        yield from ()

    def declarations(self, key: str = "") -> Iterator[Part]:
        """Yield these settings and those in them, each with its key and what a class declares."""
        yield from (Part(key, self, *declared) for declared in _declared(type(self)))
        for name, named in _keys(type(self)):
            value, at = getattr(self, name), f"{key}.{named}" if key else named
            for i, part in enumerate(value if isinstance(value, tuple) else (value,)):
                if isinstance(part, Settings):
                    yield from part.declarations(at if part is value else f"{at}.{i}")

    @cached_property
    def _field_hash(self) -> int:
        return hash(tuple(self.__dict__.get(name) for name in type(self).model_fields))

    def __hash__(self) -> int:
        """Return the hash of the fields, computed once: large graphs need it a million times."""
        return self._field_hash

    def __eq__(self, other: object) -> bool:
        """Whether all fields are equal; the same object, or known hashes, tell it at once."""
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


@cache
def _declared(kind: type[Settings]) -> list[tuple[Needs, Lacks]]:
    """Return what a class and its bases declare, each by itself."""
    own = ((vars(base).get("needs", {}), vars(base).get("lacks", {})) for base in kind.__mro__)
    return [declared for declared in own if any(declared)]


@cache
def _keys(kind: type[Settings]) -> list[tuple[str, str]]:
    """Return the fields of a class, and their keys in files."""
    return [(name, field.alias or name) for name, field in kind.model_fields.items()]


class Choice(Settings):
    """An alternative, chosen by its name, such as a model or a local trainer.

    `room` is the package, below `fedstage`, that implements this kind, and `module` the
    alternative's module there, by default of the alternative's name. A plugin implements its
    alternatives in the module of their settings. `functions` are what a module of this kind must
    define, and `declared` what its settings must declare where a class among these overrides a
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
    """Return the classes of a union, and what plugins add: all of the same rooms."""
    choices = (kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Choice))
    return (*kinds, *PLUGINS.of_rooms({kind.room for kind in choices}))


def implementation(choice: Choice) -> ModuleType:
    """Import the module of an alternative."""
    return import_module(choice.implemented_in)


def called(choice: Choice, key: str) -> str:
    """Return what messages call an alternative: ``mine/x.py: x`` of a plugin, else ``key = x``."""
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
    """Yield the classes of alternatives, each with a name, unless their modules were unloaded."""
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
    """Opens a union to the alternatives of plugins when its schema is built."""

    def __get_pydantic_core_schema__(self, union: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return handler(Union[with_plugins(get_args(union))])  # noqa: UP007


T = TypeVar("T")

#: A union of choices by their `name`, in full or in short form: ``ByName[FedAvg | FedProx]``.
ByName = Annotated[T, Field(discriminator="name"), BeforeValidator(expand_choice), _WithPlugins()]
