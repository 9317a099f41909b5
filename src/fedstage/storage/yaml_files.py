"""Reading YAML files: recipes, next to their files, and the plugins that `config.yaml` names.

Content that YAML 1.1 reads in a surprising way is refused.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml

from fedstage.errors import FedstageError, fault_of
from fedstage.protocol.digests import SCHEMA_VERSION, digest
from fedstage.settings.base import Settings
from fedstage.settings.plugins import load_plugins
from fedstage.settings.validation import validate_restricted

S = TypeVar("S", bound=Settings)

#: Numbers of YAML 1.1 that YAML 1.2 reads otherwise: base 60 (``1:30``) and octal (``010``).
_OLD_NUMBER = re.compile(r"[-+]?(?:0[0-9_]+|[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?)")


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """A loader that refuses what is read in a surprising way.

    libyaml's, where PyYAML has it, is ten times as fast; both refuse Python objects.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._checked: set[yaml.Node] = set()

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Refuse a repeated key, before the keys of other mappings are merged with these."""
        first: dict[tuple[str, str], yaml.Node] = {}
        for key, _ in node.value if node not in self._checked else ():
            other = first.setdefault((key.tag, str(key.value)), key)
            if other is not key:
                raise FedstageError(
                    f"{_line(key)}: duplicate key {key.value!r} (first used in {_line(other)})"
                )
        self._checked.add(node)
        super().flatten_mapping(node)

    def construct_scalar(self, node: yaml.Node) -> Any:
        """Refuse a number that YAML 1.2 reads otherwise, and a NUL character."""
        number = node.tag.endswith((":int", ":float")) and not getattr(node, "style", None)
        if number and _OLD_NUMBER.fullmatch(str(node.value)):
            raise FedstageError(
                f"{_line(node)}: {node.value}: YAML 1.1 and 1.2 read different numbers: "
                "write it in base 10 without leading zeros, or in quotes if it is text"
            )
        if "\0" in node.value:
            raise FedstageError(f"{_line(node)}: {node.value!r}: has a NUL character")
        return super().construct_scalar(node)


def _line(node: yaml.Node) -> str:
    return f"line {node.start_mark.line + 1}"


def load_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML mapping.

    Raises
    ------
    FedstageError
        If the file is missing, holds anything else, has a key twice in one mapping, or has a
        number that YAML 1.1 and 1.2 read differently.
    """
    with fault_of(str(path)):
        try:
            content = yaml.load(path.read_text(encoding="utf-8"), _Loader)
        except OSError as error:
            raise FedstageError(error.strerror) from None
        except UnicodeDecodeError as error:
            raise FedstageError(f"not UTF-8 text: {error}") from None
        except yaml.MarkedYAMLError as error:
            where = error.problem_mark.line + 1 if error.problem_mark else "?"
            raise FedstageError(f"line {where}: not valid YAML: {error.problem}") from None
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            told = " ".join(str(error).split())  # such as an integer of too many digits
            raise FedstageError(f"not valid YAML: {told}") from None
        if not isinstance(content, dict):
            raise FedstageError("must be a mapping of keys to values")
    return content


def read_recipe(path: Path, kind: type[S]) -> S:
    """Read the settings that stage `recipe` wrote.

    Raises
    ------
    FedstageError
        If the file is missing or altered, or belongs to another schema.
    """
    content = load_yaml(path)
    if (found := content.get("schema")) != SCHEMA_VERSION:
        raise FedstageError(f"{path}: schema = {found!r}: this version reads {SCHEMA_VERSION}")
    settings = content.get("settings")
    if (stated := content.get("digest")) != digest(settings):
        raise FedstageError(f"{path}: digest = {stated!r}: altered; delete the file")
    return validate_restricted(kind, settings, str(path))


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
