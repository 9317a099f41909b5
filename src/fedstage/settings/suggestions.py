"""What a misspelled name may have meant."""

from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

from fedstage.settings.base import with_plugins


def suggest(given: Any, known: Iterable[str]) -> str:
    """Return ``; did you mean 'client'?`` for the nearest known name, or nothing."""
    close = nearest(given, known)
    return f"; did you mean {close!r}?" if close is not None else ""


def nearest(given: Any, known: Iterable[str]) -> str | None:
    """Return the known name that a given name may be meant for, if there is one."""
    names = {name.lower(): name for name in known}
    close = get_close_matches(str(given).lower(), names, n=1)
    return names[close[0]] if close else None


def keys_at(settings: Any, place: Sequence[int | str]) -> list[str]:
    """Return the keys that settings may have at a place, as pydantic names it in a fault."""
    return [key for kind in kinds_at(settings, place) for key in keys(kind)]


def keys(kind: type[BaseModel]) -> list[str]:
    """Return the keys that settings of a class have in YAML."""
    return [field.alias or name for name, field in kind.model_fields.items()]


def kinds_at(annotation: Any, place: Sequence[int | str]) -> Iterator[type[BaseModel]]:
    """Yield the classes at a place below a type; a choice's name is a part of the place."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield from _below(annotation, place)
    elif origin is Annotated:
        yield from kinds_at(inner[0], place)
    elif origin in (Union, UnionType):
        inner = with_plugins(inner)
        chosen = [kind for kind in inner if place and place[0] in _names(kind)]
        for kind in chosen or inner:
            yield from kinds_at(kind, place[1:] if chosen else place)
    elif origin in (list, dict, tuple) and place:
        yield from kinds_at(inner[0 if origin is tuple else -1], place[1:])


def _below(kind: type[BaseModel], place: Sequence[int | str]) -> Iterator[type[BaseModel]]:
    if not place:
        yield kind
    for name, field in kind.model_fields.items():
        if place and place[0] == (field.alias or name):
            yield from kinds_at(field.annotation, place[1:])


def _names(kind: Any) -> tuple[str, ...]:
    """Return the names of the alternatives that a class describes, if it is one of a choice."""
    fields = kind.model_fields if isinstance(kind, type) and issubclass(kind, BaseModel) else {}
    return get_args(fields["name"].annotation) if "name" in fields else ()
