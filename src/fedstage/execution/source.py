"""Fingerprint of the installed source."""

import hashlib
from functools import cache
from pathlib import Path


@cache
def fingerprint() -> str:
    """Return a digest of all source files of the package, as they are on disk."""
    package = Path(__file__).parent.parent
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(str(path.relative_to(package)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]
