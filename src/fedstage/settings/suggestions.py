"""What a misspelled name may have meant, and what numbers a setting takes."""

from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from fedstage.settings.base import with_plugins

#: Bounds, as pydantic names them, in words.
_WORDS = {"ge": "at least", "gt": "greater than", "le": "at most", "lt": "less than"}


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
    return [key for kind in _kinds(settings, place) for key in keys(kind)]


def bounds_at(settings: Any, place: Sequence[int | str]) -> str:
    """Return the bounds of numbers at a place: ``, at least 1 and at most 100``, or nothing."""
    fields = _fields_at(settings, place)
    found = dict.fromkeys(bound for field in fields for bound in _bounds(field))
    return f", {' and '.join(found)}" if found else ""


def default_at(settings: Any, place: Sequence[int | str]) -> str:
    """Return the default of an optional key: ``; its default is held_out``, or nothing."""
    fields = [field for field in _fields_at(settings, place) if not field.is_required()]
    for default in (field.get_default(call_default_factory=False) for field in fields):
        if default is not None:
            return f"; its default is {getattr(default, 'name', default)}"
    return ""


def _fields_at(settings: Any, place: Sequence[int | str]) -> list[FieldInfo]:
    """Return the declarations of a key at a place, or of the list that an item is in."""
    *above, name = place or [""]
    while isinstance(name, int) and above:  # an item of a list
        name = above.pop()
    return [
        field
        for kind in _kinds(settings, above)
        for key, field in kind.model_fields.items()
        if name == (field.alias or key)
    ]


def _bounds(declared: Any) -> Iterator[str]:
    """Yield the bounds that a field or type declares, except the limits of 64 bits."""
    if isinstance(declared, FieldInfo):
        metadata, inner = declared.metadata, (declared.annotation,)
    else:
        metadata, inner = getattr(declared, "__metadata__", []), get_args(declared)
    for one in metadata:
        if isinstance(one, FieldInfo):
            yield from _bounds(one)
        for name, words in _WORDS.items():
            bound = getattr(one, name, None)
            if isinstance(bound, int | float) and abs(bound) < 2**63:
                yield f"{words} {bound}"
    for part in inner:
        yield from _bounds(part)


def keys(kind: type[BaseModel]) -> list[str]:
    """Return the keys that settings of a class have in YAML."""
    return [field.alias or name for name, field in kind.model_fields.items()]


def _kinds(annotation: Any, place: Sequence[int | str]) -> Iterator[type[BaseModel]]:
    """Yield the classes at a place below a type; a choice's name is a part of the place."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield from _below(annotation, place)
    elif origin is Annotated:
        yield from _kinds(inner[0], place)
    elif origin in (Union, UnionType):
        inner = with_plugins(inner)
        chosen = [kind for kind in inner if place and place[0] in _names(kind)]
        for kind in chosen or inner:
            yield from _kinds(kind, place[1:] if chosen else place)
    elif origin in (list, dict, tuple) and place:
        yield from _kinds(inner[0 if origin is tuple else -1], place[1:])


def _below(kind: type[BaseModel], place: Sequence[int | str]) -> Iterator[type[BaseModel]]:
    if not place:
        yield kind
    for name, field in kind.model_fields.items():
        if place and place[0] == (field.alias or name):
            yield from _kinds(field.annotation, place[1:])


def _names(kind: Any) -> tuple[str, ...]:
    """Return the names of the alternatives that a class describes, if it is one of a choice."""
    fields = kind.model_fields if isinstance(kind, type) and issubclass(kind, BaseModel) else {}
    return get_args(fields["name"].annotation) if "name" in fields else ()
