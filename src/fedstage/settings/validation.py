"""From parsed YAML to checked settings, with actionable error messages."""

import os
import re
import shlex
import shutil
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from itertools import groupby
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from fedstage.errors import FedstageError
from fedstage.settings.base import CHOICES, IN_WORDS, RESTRICTED, Settings, subclasses, with_plugins


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
        chosen = [kind for kind in inner if place and place[0] in _names_of(kind)]
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


def _names_of(kind: Any) -> tuple[str, ...]:
    """Return the names of the alternatives that a class describes, if it is one of a choice."""
    fields = kind.model_fields if isinstance(kind, type) and issubclass(kind, BaseModel) else {}
    return get_args(fields["name"].annotation) if "name" in fields else ()


#: The last part of the place of a fault, if a value may have several types.
_A_TYPE = re.compile(r"constrained-\w+|literal\[.*\]")

S = TypeVar("S", bound=BaseModel)

_A_MAPPING = "must be a mapping of keys to values"
_A_LIST = "must be a list"
_A_CHOICE = "must be a name, or one name with its settings: {{NAME: {{KEY: VALUE}}}}"
#: What is allowed, where pydantic's own words are about Python.
_MESSAGES = {
    "extra_forbidden": "unknown key",
    "model_type": _A_MAPPING,
    "dict_type": _A_MAPPING,
    "list_type": _A_LIST,
    "tuple_type": _A_LIST,
    "too_short": "must have at least {min_length} item",
    "too_long": "must have at most {max_length} items",
    "model_attributes_type": _A_CHOICE,
    "union_tag_not_found": _A_CHOICE,
    "union_tag_invalid": "unknown; use {expected_tags}",
}


def validate(settings: type[S], raw: Any, where: str, context: str | Path | None = None) -> S:
    """Build settings from parsed YAML.

    Raises
    ------
    FedstageError
        With one line per fault: where, key, value, and what is allowed.
    """
    try:
        return settings.model_validate(raw, context=context)
    except ValidationError as error:
        faults = _one_a_value(fault for fault in error.errors() if not _follows(fault))
        told = (f"{where}: {_describe(fault)}{_suggestion(settings, fault)}" for fault in faults)
        raise FedstageError("\n".join(told)) from None


#: Valid values for the settings that a restricted configuration may lack.
_ABSENT: dict[str, Any] = {
    "data": {"name": "digits"},
    "clients": 1,
    "participants": 1,
    "partition": {"name": "iid"},
    "model": {"name": "logistic_regression"},
    "client": {"epochs": 1, "batch_size": 1, "learning_rate": 1.0},
    "seed": 0,
}


def validate_restricted(settings: type[S], raw: Any, where: str) -> S:
    """Build settings from the part of them that determines the files of a folder.

    Required settings may be absent, and their compatibility is not checked again.

    Raises
    ------
    FedstageError
        If a key is unknown, or a value is not allowed.
    """
    if not isinstance(raw, dict):
        return validate(settings, raw, where)
    fields = settings.model_fields
    absent = {key: value for key, value in _ABSENT.items() if key in fields and key not in raw}
    found = validate(settings, raw | absent, where, RESTRICTED)
    kept = {name: value for name, value in found.__dict__.items() if name not in absent}
    return settings.model_construct(**kept) if absent else found


def _describe(fault: Any) -> str:
    """Return the key and value of a fault, and what is allowed, in the words of YAML."""
    kind, context = fault["type"], fault.get("ctx", {})
    key = ".".join(_without_tags([str(part) for part in fault["loc"]]))
    if kind == "value_error":
        return f"{key + ': ' if key else ''}{context['error']}"
    if kind == "missing":
        return f"{key}: missing, a value is required"
    if kind == "string_pattern_mismatch":
        allowed = IN_WORDS[context["pattern"]]
    elif kind in _MESSAGES:
        allowed = _MESSAGES[kind].format(**context)
    else:
        allowed = str(fault["msg"]).replace("Input should", "must")
    value = context.get("tag", fault["input"])
    if _MESSAGES.get(kind) == _A_CHOICE and isinstance(value, dict) and len(value) > 1:
        allowed = f"{allowed}; --config and --configfile add to a mapping that is there"
    return f"{key + ' = ' if key else ''}{'null' if value is None else repr(value)}: {allowed}"


def _one_a_value(faults: Iterable[Any]) -> Iterator[Any]:
    """Yield the faults, with a single one for a value that may have several types."""
    for (place, several), same in groupby(faults, _place):
        first, *others = same
        if not several:
            yield from (first, *others)
            continue
        allowed = (fault["msg"].removeprefix("Input should be ") for fault in others)
        yield {**first, "loc": place, "msg": ", or ".join([first["msg"], *allowed])}


def _place(fault: Any) -> tuple[tuple[Any, ...], bool]:
    """Return where a fault is, and whether its value may have several types."""
    *place, last = fault["loc"] or ("",)
    several = isinstance(last, str) and _A_TYPE.fullmatch(last) is not None
    return (tuple(place) if several else fault["loc"]), several


def _suggestion(settings: Any, fault: Any) -> str:
    """Return what an unknown key, choice or word may have meant, or nothing."""
    context = fault.get("ctx", {})
    if fault["type"] == "extra_forbidden":
        *place, key = fault["loc"]
        known = sorted(set(keys_at(settings, place)) - {"name"})
        return suggest(key, known) or (f"; use one of {', '.join(known)}" if known else "")
    if fault["type"] == "union_tag_invalid":
        return suggest(context["tag"], re.findall(r"'([^']*)'", context["expected_tags"]))
    if fault["type"] == "literal_error" and isinstance(fault["input"], str):
        return suggest(fault["input"], re.findall(r"'([^']*)'", context["expected"]))
    return ""


def _follows(fault: Any) -> bool:
    """Whether a list counts as too short only because of its faulty items."""
    return bool(fault["type"] == "too_short" and len(fault["input"]) >= fault["ctx"]["min_length"])


def _without_tags(path: list[str]) -> list[str]:
    """Drop the name of a choice that pydantic puts after the choice's key."""
    kept: list[str] = []
    after_choice = False
    for part in path:
        if not (after_choice and part in _names()):
            kept.append(part)
        # In a list of choices, an index is between the key and the name.
        after_choice = part in CHOICES or (after_choice and part.isdecimal())
    return kept


def _names() -> frozenset[str]:
    """Return the names of all choices, not cached because more may be imported later."""
    fields = (kind.model_fields.get("name") for kind in subclasses(Settings))
    return frozenset(name for field in fields if field for name in get_args(field.annotation))


def as_typed(*words: str) -> str:
    """Return a command of this package or snakemake, quoted for the shell.

    It begins with ``uv run`` if the current command did, or if the command would not be found
    otherwise.
    """
    through_uv = "UV_RUN_RECURSION_DEPTH" in os.environ or shutil.which(words[0]) is None
    return shlex.join(["uv", "run", *words] if through_uv else words)


def see_list(kind: str) -> str:
    """Return where the names of a kind are listed: ``see `fedstage list methods```."""
    return f"see `{as_typed('fedstage', 'list', kind)}`"
