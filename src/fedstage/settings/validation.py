"""From parsed YAML to checked settings, with actionable error messages."""

import json
import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from fedstage.errors import FedstageError
from fedstage.settings.base import CHOICES, RESTRICTED, Settings, subclasses
from fedstage.settings.patterns import IN_WORDS
from fedstage.settings.suggestions import bounds_at, default_at, keys_at, nearest, suggest

#: What values of these types look like as text.
_PLAIN = {
    "int_type": re.compile(r"[+-]?\d+"),
    "float_type": re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE),
    "bool_type": re.compile(r"true|false", re.IGNORECASE),
}

#: Faults of values that are not lists, and what pydantic calls lists.
_LISTS = frozenset({"list_type", "tuple_type"})
_A_VALID_LIST = re.compile("a valid (list|tuple)")
#: The text after which the allowed range is inserted.
_A_NUMBER = re.compile("a valid (integer|number)")

#: The last part of the place of a fault, if a value may have several types.
_A_TYPE = re.compile(r"constrained-\w+|literal\[.*\]")

S = TypeVar("S", bound=BaseModel)

_A_MAPPING = "must be a mapping of keys to values"
_A_CHOICE = "must be a name, or one name with its settings: {NAME: {KEY: VALUE}}"
_MESSAGES = {
    "model_type": _A_MAPPING,
    "dict_type": _A_MAPPING,
    "model_attributes_type": _A_CHOICE,
    "union_tag_not_found": _A_CHOICE,
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
        faults = error.errors()
        misspelt = {_meant(settings, fault) for fault in faults}
        raise FedstageError(
            "\n".join(
                f"{_describe(settings, fault, where)}{_suggestion(settings, fault)}"
                for fault in _one_a_value(faults)
                if not _follows(fault) and (fault["type"], fault["loc"]) not in misspelt
            )
        ) from None


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


def _describe(settings: Any, fault: Any, where: str) -> str:
    key = ".".join(_without_tags([str(part) for part in fault["loc"]]))
    message = fault["msg"].removeprefix("Value error, ")
    if fault["type"] == "value_error":
        return f"{where}: {key + ': ' if key else ''}{message}"
    if fault["type"] == "missing":
        return f"{where}: {key}: missing, a value is required"
    if fault["type"] == "extra_forbidden":
        return f"{where}: {key} = {_shown(fault['input'])}: unknown key"
    if fault["type"] == "union_tag_invalid":
        context = fault["ctx"]
        return f"{where}: {key} = {context['tag']!r}: unknown; use {context['expected_tags']}"
    default = default_at(settings, fault["loc"]) if fault["input"] is None else ""
    subject = f"{key} = {_shown(fault['input'])}" if key else _shown(fault["input"])
    return f"{where}: {subject}: {_allowed(settings, fault)}{default}"


def _shown(value: Any) -> str:
    """Return a value as messages show it: null as YAML writes it, anything else as Python does."""
    return "null" if value is None else repr(value)


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


def _meant(settings: Any, fault: Any) -> tuple[str, tuple[Any, ...]] | None:
    """Return the fault that an unknown key also causes if it misspells a required key."""
    if fault["type"] != "extra_forbidden":
        return None
    *place, key = fault["loc"]
    near = nearest(key, keys_at(settings, place))
    return ("missing", (*place, near)) if near else None


def _allowed(settings: Any, fault: Any) -> str:
    if fault["type"] == "too_short":
        return f"must have at least {fault['ctx']['min_length']} item"
    if fault["type"] == "string_pattern_mismatch":
        return IN_WORDS[fault["ctx"]["pattern"]]
    message = str(fault["msg"]).replace("Input should", "must")
    if fault["type"] == "string_type" and isinstance(fault["input"], bool):
        return f"{message}, but YAML reads no, off, yes and on as truth values: quote them"
    if fault["type"] in _LISTS:
        return _A_VALID_LIST.sub("a list", message) + _as_list(fault["input"])
    if fault["type"] in _PLAIN:
        message = _A_NUMBER.sub(rf"\g<0>{bounds_at(settings, fault['loc'])}", message, count=1)
    return _MESSAGES.get(fault["type"], message) + _of_text(fault) + _keys_of(settings, fault)


def _as_list(value: Any) -> str:
    """Return what a single value looks like as a list, or nothing for a mapping."""
    return f", such as [{value}]" if isinstance(value, str | int | float) else ""


def _keys_of(settings: Any, fault: Any) -> str:
    """Return the keys of the mapping that a value should be, or nothing."""
    known = keys_at(settings, fault["loc"]) if fault["type"] == "model_type" else []
    return f", such as {{{known[0]}: ...}}; its keys are {', '.join(known)}" if known else ""


def _of_text(fault: Any) -> str:
    """Return why a number is text: it has quotes, or is in a mapping or list of --config."""
    if fault["type"] not in _PLAIN or not isinstance(fault["input"], str):
        return ""
    if not _PLAIN[fault["type"]].fullmatch(fault["input"]):
        return ""
    return (
        ", and is text: write it without quotes and, as Snakemake reads all within the braces of "
        "--config as text, in a file: --configfile FILE"
    )


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
