"""From parsed YAML to checked settings, with errors that a person can act on."""

import json
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from fedstage.config import CHOICES
from fedstage.errors import FedstageError

S = TypeVar("S", bound=BaseModel)


def validate(settings: type[S], raw: Any, where: str) -> S:
    """Build settings from parsed YAML.

    Raises
    ------
    FedstageError
        One line a fault: where, key, value, and what is allowed.
    """
    try:
        return settings.model_validate(raw)
    except ValidationError as error:
        raise FedstageError(
            "\n".join(_describe(fault, where) for fault in error.errors())
        ) from None


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


def _describe(fault: Any, where: str) -> str:
    key = ".".join(_without_tags([str(part) for part in fault["loc"]]))
    message = fault["msg"].removeprefix("Value error, ")
    if fault["type"] == "value_error":
        return f"{where}: {key + ': ' if key else ''}{message}"
    if fault["type"] == "missing":
        return f"{where}: {key}: missing, a value is required"
    if fault["type"] == "extra_forbidden":
        return f"{where}: {key} = {fault['input']!r}: unknown key"
    if fault["type"] == "union_tag_invalid":
        context = fault["ctx"]
        return f"{where}: {key} = {context['tag']!r}: unknown; use {context['expected_tags']}"
    return f"{where}: {key} = {fault['input']!r}: {message.replace('Input should', 'must')}"


def _without_tags(path: list[str]) -> list[str]:
    """Drop the choice's name that pydantic puts behind a choice's key."""
    kept: list[str] = []
    after_choice = False
    for part in path:
        if not after_choice:
            kept.append(part)
        after_choice = part in CHOICES and not after_choice
    return kept
