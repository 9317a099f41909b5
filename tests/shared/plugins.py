"""Plugins for the time of a test."""

from contextlib import contextmanager
from pathlib import Path

from fedstage.plan.source import read_again
from fedstage.settings.plugins import load_plugins
from fedstage.settings.registry import PLUGINS


@contextmanager
def loaded(file, code):
    """Write a plugin below the current folder, load it, and forget it at the end; its classes."""
    Path(file).parent.mkdir(parents=True, exist_ok=True)
    Path(file).write_text(code)
    load_plugins([file])
    read_again()
    try:
        yield {name: kind for kinds in PLUGINS.choices.values() for name, kind in kinds.items()}
    finally:
        load_plugins([])
        read_again()
