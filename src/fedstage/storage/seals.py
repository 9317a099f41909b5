"""Seals of JSON and YAML artefacts: the identity of the file, and a SHA-256 of its content.

A seal is one more key of the mapping, so other programs can still read the file.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedstage.errors import FedstageError
from fedstage.storage.identity import SEAL, check_statement, statement


def sealed(content: Mapping[str, Any], path: str | Path) -> dict[str, Any]:
    """Return JSON-serialisable content with the seal of the file at `path`."""
    stated = statement(path)
    rest = {key: value for key, value in content.items() if key != SEAL}
    return {**rest, SEAL: stated | {"sha256": _digest(rest, stated)}}


def unsealed(content: Mapping[str, Any], path: str | Path) -> dict[str, Any]:
    """Return the content of the file at `path` without its seal.

    Raises
    ------
    FedstageError
        If the content is not what was sealed, or belongs to another file.
    """
    rest = {key: value for key, value in content.items() if key != SEAL}
    seal = content.get(SEAL)
    if not isinstance(seal, dict) or "sha256" not in seal:
        reason = f"has no SHA-256 under the key {SEAL!r}: altered, or an older version wrote it"
        raise FedstageError(f"{path}: {reason}; delete it to make it again")
    stated = {key: value for key, value in seal.items() if key != "sha256"}
    if seal["sha256"] != _digest(rest, stated):
        raise FedstageError(
            f"{path}: altered: not what its SHA-256 is of; delete it to make it again"
        )
    check_statement(path, stated)
    return rest


def _digest(content: Mapping[str, Any], stated: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the content as it is read from the file."""
    read = json.loads(json.dumps([content, stated]))
    text = json.dumps(read, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
