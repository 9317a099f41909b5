"""What all settings have in common: bounds, strictness, and choices by name."""

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

Positive = Annotated[int, Field(ge=1)]
Count = Annotated[int, Field(ge=0)]
Rate = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]
Fraction = Annotated[float, Field(ge=0, lt=1)]
#: A file of weights below the working folder, whose name says all that determines it.
WeightsFile = Annotated[str, Field(pattern=r"^results/.+\.safetensors$")]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$")]  # may be part of a file's name

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
        "ensemble",
        "global",
        "evaluate",
        "schedule",
        "loss",
        "aggregator",
        "aggregator_training",
        "distillation",
        "student",
        "quantisation",
    }
)


class Settings(BaseModel):
    """Base of all settings: frozen, strict about types, without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    @cached_property
    def _field_hash(self) -> int:
        return hash(tuple(self.__dict__[name] for name in type(self).model_fields))

    def __hash__(self) -> int:
        """Return the hash of the fields, computed once: large graphs ask a million times."""
        return self._field_hash

    def __copy__(self) -> Self:
        """Return a copy, whose fields may then be changed by `model_copy`."""
        copied = super().__copy__()
        copied.__dict__.pop("_field_hash", None)
        return copied


def expand_choice(value: Any) -> Any:
    """Write a choice in full: ``a`` and ``{a: {b: 1}}`` become ``{name: a}`` and with ``b: 1``."""
    if isinstance(value, str):
        return {"name": value}
    if isinstance(value, Mapping) and "name" not in value and len(value) == 1:
        ((name, settings),) = value.items()
        if isinstance(settings, Mapping) or settings is None:
            return {"name": name, **(settings or {})}
    return value


BY_NAME = Field(discriminator="name")
IN_SHORT = BeforeValidator(expand_choice)
