"""Files that a plan writes for its jobs: settings, source, raw data, and what results are about.

Each determines results, and is an input of the jobs whose results it determines. It is written only
if its content has changed, so that its time tells when.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from fedstage.plan.source import Source, changed_files
from fedstage.protocol.digests import SCHEMA_VERSION, canonical, digest
from fedstage.settings.base import Settings
from fedstage.settings.data_sets import OfFiles
from fedstage.storage.files import load_json, read_bytes, save_json, save_text
from fedstage.storage.raw_files import raw_contents, recorded

#: Parts of the source that were said to have changed.
_TOLD: set[str] = set()


def write(path: str, text: str) -> None:
    """Write a text, unless the file has it."""
    if not Path(path).is_file() or read_bytes(path) != text.encode():
        save_text(path, text)


def write_recipe(path: str, config: Settings) -> None:
    """Write the settings of a folder."""
    settings = canonical(config)
    content = {"schema": SCHEMA_VERSION, "digest": digest(settings), "settings": settings}
    write(path, yaml.safe_dump(content, sort_keys=False))


def write_json(path: str, content: Mapping[str, Any]) -> None:
    """Write the description of an experiment, or of a choice."""
    write(path, json.dumps(content, indent=1) + "\n")


def write_raw(path: str, data: OfFiles, folder: Path | None, record: Path) -> None:
    """Write the digests of a data set's raw files; if these are gone, as recorded or as before."""
    then = load_json(path) if Path(path).is_file() else {}
    write_json(path, raw_contents(data, folder) or recorded(record) or then)


def write_source(of: Source) -> None:
    """Write the digests of a stage's source; print a line for each file that has changed."""
    now, path = of.parts(), Path(of.file)
    then = load_json(path) if path.is_file() else now
    if path.is_file() and then == now:
        return
    for name in changed_files(then, now):
        if name not in _TOLD:
            _TOLD.add(name)
            print(f"fedstage: {name} has changed, which {of.stage} reaches", file=sys.stderr)
    save_json(path, now)
