"""Merging of raw settings from YAML: base, scale, method, grid point."""

import re
from collections.abc import Mapping
from typing import Any

from fedstage.settings.base import CHOICES, expand_choice

Raw = dict[str, Any]

_EXPONENT = re.compile(r"[+-]?\d+(\.\d*)?e[+-]?\d+", re.IGNORECASE)


def merge(base: Mapping[str, Any], overlay: Mapping[str, Any]) -> Raw:
    """Return `base` with `overlay` laid over it, key by key.

    A choice of another name replaces the old one and all its settings. A choice of the same name,
    or settings without a name, are merged into it.
    """
    return lay(in_full(base), in_full(overlay))


def merge_each(below: Mapping[str, Raw], above: Mapping[str, Raw]) -> dict[str, Raw]:
    """Merge mappings of settings, such as methods, name by name."""
    names = {**below, **above}
    return {name: merge(below.get(name, {}), above.get(name, {})) for name in names}


def in_full(settings: Mapping[str, Any]) -> Raw:
    """Return settings with short forms of choices and of numbers written out."""
    return {key: plain(key, value) for key, value in settings.items()}


def lay(base: Raw, overlay: Raw) -> Raw:
    """Merge settings that are free of short forms."""
    merged = dict(base)
    for key, value in overlay.items():
        old = merged.get(key)
        if isinstance(old, dict) and isinstance(value, dict) and _same_choice(key, old, value):
            value = lay(old, value)
        merged[key] = value
    return merged


def assign(settings: Mapping[str, Any], path: str, value: Any) -> Raw:
    """Return settings with the value at a dotted path, such as ``partition.alpha``, replaced."""
    head, _, rest = path.partition(".")
    old = plain(head, settings.get(head))
    inner = old if isinstance(old, dict) else {}
    new = assign(inner, rest, value) if rest else plain(head, value)
    return lay({**settings, head: old}, {head: new})


def _same_choice(key: str, old: Raw, new: Raw) -> bool:
    return key not in CHOICES or new.get("name", old.get("name")) == old.get("name")


def plain(key: str, value: Any) -> Any:
    """Expand short forms of choices, and convert 1e-3 to a number, which is text in YAML 1.1."""
    if key in CHOICES:
        value = expand_choice(value)
    if isinstance(value, Mapping):
        return {str(inner): plain(str(inner), item) for inner, item in value.items()}
    if isinstance(value, list):
        return [plain("", item) for item in value]
    if isinstance(value, str) and _EXPONENT.fullmatch(value):
        return float(value)
    return value


def flatten(settings: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Return nested settings as one mapping of dotted keys to values as text."""
    flat: dict[str, str] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping) and value:
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = str(value)
    return flat
