"""The plugins that a process loads, named by its environment or the project's configuration."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedstage.errors import FedstageError
from fedstage.settings.plugins import load_plugins
from fedstage.storage.yaml_files import load_yaml

#: The paths of the plugins, which the Snakefile sets for its jobs.
VARIABLE = "FEDSTAGE_PLUGINS"


def load_for_jobs(config: Mapping[str, Any]) -> None:
    """Load the plugins of a configuration, here and in all processes that this one starts.

    Raises
    ------
    FedstageError
        If they are not a list of paths, or cannot be loaded.
    """
    named = _named(config, "config.yaml")
    os.environ[VARIABLE] = os.pathsep.join(named)
    load_plugins(named)


def load_project_plugins(config: Path = Path("config.yaml"), root: Path = Path()) -> None:
    """Load the plugins that a parent process has passed on, or that a configuration names.

    Without a configuration only plugins of installed packages are loaded.

    Parameters
    ----------
    config : Path
        A configuration file.
    root : Path
        The project, to which its paths are relative.

    Raises
    ------
    FedstageError
        If they are not a list of paths, or cannot be loaded.
    """
    passed = os.environ.get(VARIABLE)
    if passed is not None:
        load_plugins([path for path in passed.split(os.pathsep) if path])
        return
    named = _named(load_yaml(config), str(config)) if config.is_file() else []
    load_plugins([str(root / path) for path in named])


def _named(content: Mapping[str, Any], where: str) -> list[str]:
    """Return the plugins that the content of a configuration names."""
    named = content.get("plugins", [])
    if not isinstance(named, list) or not all(isinstance(path, str) for path in named):
        raise FedstageError(f"{where}: plugins = {named!r}: must be a list of files and folders")
    return named
