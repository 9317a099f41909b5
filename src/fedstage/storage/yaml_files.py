"""Reading YAML files: recipes, next to their files, and the plugins that `config.yaml` names.

Content that YAML 1.1 reads in a surprising way is refused.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml

from fedstage.errors import FedstageError
from fedstage.protocol.digests import SCHEMA_VERSION, digest
from fedstage.settings.base import Settings
from fedstage.settings.plugins import load_plugins
from fedstage.settings.validation import validate_restricted

S = TypeVar("S", bound=Settings)

#: libyaml's loader, ten times as fast, where PyYAML has it; both refuse Python objects.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
#: Numbers of YAML 1.1 that YAML 1.2 reads otherwise: base 60 (``1:30``) and octal (``010``).
_OLD_NUMBER = re.compile(r"[-+]?(?:0[0-9_]+|[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?)")


def load_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML mapping.

    Raises
    ------
    FedstageError
        If the file is missing, holds anything else, has a key twice in one mapping, or has a
        number that YAML 1.1 and 1.2 read differently.
    """
    try:
        content = _parse(path.read_text(encoding="utf-8"), path)
    except OSError as error:
        raise FedstageError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise FedstageError(f"{path}: not UTF-8 text: {error}") from None
    except yaml.YAMLError as error:
        raise FedstageError(f"{path}: {_explained(error)}") from None
    if not isinstance(content, dict):
        raise FedstageError(f"{path}: must be a mapping of keys to values")
    return content


def _explained(error: yaml.YAMLError) -> str:
    """Return the line of a syntax error, and what the parser says of it."""
    problem, mark = getattr(error, "problem", None), getattr(error, "problem_mark", None)
    if problem is None or mark is None:
        return f"not valid YAML: {' '.join(str(error).split())}"
    return f"line {mark.line + 1}: not valid YAML: {problem}"


def _parse(text: str, path: Path) -> Any:
    """Return the content of YAML, in which no key may be repeated."""
    loader = _LOADER(text)
    try:
        root = loader.get_single_node()
        for node in _nodes(root):
            _check_node(node, path)
        return None if root is None else loader.construct_document(root)
    except (ValueError, RecursionError) as error:  # such as an integer of too many digits
        raise FedstageError(f"{path}: not valid YAML: {error}") from None
    finally:
        loader.dispose()


def _nodes(root: yaml.Node | None) -> Iterator[yaml.Node]:
    """Yield all nodes in the order of the text, those with aliases once."""
    waiting, seen = [root] if root else [], set[int]()
    while waiting:
        node = waiting.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            if isinstance(node, yaml.MappingNode):
                waiting += [one for pair in reversed(node.value) for one in reversed(pair)]
            elif isinstance(node, yaml.SequenceNode):
                waiting += reversed(node.value)


def _check_node(node: yaml.Node, path: Path) -> None:
    """Refuse a repeated key, a number that YAML 1.2 reads otherwise, and a NUL character."""
    line = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        first: dict[tuple[str, str], yaml.Node] = {}
        for key, _ in node.value:
            other = first.setdefault((key.tag, str(key.value)), key)
            if other is not key:
                raise FedstageError(
                    f"{path}: line {key.start_mark.line + 1}: duplicate key {key.value!r} (first "
                    f"used in line {other.start_mark.line + 1})"
                )
    elif isinstance(node, yaml.ScalarNode):
        number = node.tag.endswith((":int", ":float")) and not node.style
        if number and _OLD_NUMBER.fullmatch(node.value):
            raise FedstageError(
                f"{path}: line {line}: {node.value}: YAML 1.1 and 1.2 read different numbers: "
                "write it in base 10 without leading zeros, or in quotes if it is text"
            )
        if "\0" in node.value:
            raise FedstageError(f"{path}: line {line}: {node.value!r}: has a NUL character")


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
