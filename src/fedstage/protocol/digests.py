"""Canonical settings and their digests, which end the names of folders.

In canonical form fields at their defaults are left out, and 1 equals 1.0. Changing a default
changes the meaning of old digests, so it must raise `SCHEMA_VERSION` (a test holds the two
together).
"""

import hashlib
import json
from functools import cache
from typing import Any

from pydantic import BaseModel

SCHEMA_VERSION = 2


def canonical(settings: BaseModel) -> dict[str, Any]:
    """Return settings as JSON-serialisable data, without the fields at their defaults."""
    return settings.model_dump(mode="json", by_alias=True, exclude_defaults=True)


def as_json(content: Any) -> str:
    """Write content in the one form that digests and rule parameters use."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"))


def digest(content: Any) -> str:
    """Return 10 hexadecimal digits that identify canonical content."""
    text = as_json({"schema": SCHEMA_VERSION, "content": content})
    return hashlib.sha256(text.encode()).hexdigest()[:10]


@cache
def own_key(recipe: BaseModel) -> str:
    """Return what keys of noise and masks contain, so that no two recipes share any.

    Runs of a seed share batches and initial weights, which makes comparisons paired. If they
    shared noise, too, the difference of two results would have none, and would hide nothing.
    """
    return digest(canonical(recipe))
