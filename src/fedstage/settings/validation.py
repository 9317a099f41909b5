"""From parsed YAML to checked settings, with actionable error messages."""

import json
import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from fedstage.errors import FedstageError
from fedstage.settings.base import CHOICES, IN_WORDS, RESTRICTED, Settings, subclasses
from fedstage.settings.suggestions import keys_at, suggest

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


def validate(settings: type[S], raw: Any, where: str, context: str | None = None) -> S:
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


def validate_json(settings: type[S], text: str, where: str) -> S:
    """Build settings from a JSON text, such as a command-line option.

    Raises
    ------
    FedstageError
        If the text is not JSON, or not valid settings.
    """
    try:
        raw = json.loads(text)
    except ValueError as error:
        raise FedstageError(f"{where} = {text!r}: must be a JSON object ({error})") from None
    return validate(settings, raw, where)


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
