"""Facts about a module's source, cached between calls by the digest of its file.

Parsing all modules takes half a second, as long as everything else before a short plan.
"""

import hashlib
import json
import os
import sys
from contextlib import suppress
from pathlib import Path


def cache_folder() -> Path:
    """Return the folder of the user's cached files."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fedstage"


def key_of(module: str, *contents: bytes) -> str:
    """Return the name under which facts about a module with these contents are kept.

    Python's version is part of it: the syntax trees of versions differ.
    """
    digest = hashlib.sha256(f"{sys.version_info[:2]} {module}".encode())
    for content in contents:
        digest.update(hashlib.sha256(content).digest())
    return digest.hexdigest()


def recall(key: str) -> list[str] | None:
    """Return the lines kept under a key, None if there are none or the file was cut off."""
    try:
        lines: list[str] = json.loads((cache_folder() / "source" / key).read_text())
    except (OSError, ValueError):
        return None
    return lines


def remember(key: str, lines: list[str]) -> None:
    """Keep lines under a key, unless the folder cannot be written to."""
    folder = cache_folder() / "source"
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        temporary = folder / f".{key}.{os.getpid()}.tmp"
        # With the user's umask, which `tempfile` ignores.
        temporary.write_text(json.dumps(lines))
        temporary.replace(folder / key)  # at once, since others may read it meanwhile
