"""Configurations restricted to some of their settings, which own files."""

from functools import cache
from typing import Any, TypeVar

from fedstage.settings.base import Settings
from fedstage.settings.equivalences import simplest

T = TypeVar("T")

#: Configurations that own files, which are in their simplest form: of equal ones always the same.
_OWNED: dict[Any, Any] = {}


def interned(config: T) -> T:
    """Return the one configuration of all equal ones that own files, so that it is soon found."""
    found: T = _OWNED.setdefault(config, config)
    return found


def in_simplest_form(config: Any) -> Any:
    """Return a configuration in its simplest form, which those that own files are in."""
    return config if config in _OWNED else simplest(config)


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
    return interned(config if found == config else found)


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
