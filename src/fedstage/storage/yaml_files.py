"""Reading YAML files, among them `recipe.yaml`: the settings of a recipe, next to its files."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import yaml

from fedstage.errors import FedstageError
from fedstage.plan.digests import SCHEMA_VERSION, digest
from fedstage.settings.base import Settings
from fedstage.settings.validation import validate_restricted
from fedstage.storage.seals import unsealed

S = TypeVar("S", bound=Settings)

#: libyaml's loader, ten times as fast, where PyYAML has it; both refuse Python objects.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def load_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML mapping.

    Raises
    ------
    FedstageError
        If the file is missing, holds anything else, or has a key twice in one mapping.
    """
    try:
        content = _parse(path.read_text(encoding="utf-8"), path)
    except FileNotFoundError:
        raise FedstageError(f"{path}: No such file") from None
    except UnicodeDecodeError as error:
        raise FedstageError(f"{path}: not UTF-8 text: {error}") from None
    except yaml.YAMLError as error:
        detail = " ".join(str(error).split())
        raise FedstageError(f"{path}: not valid YAML: {detail}") from None
    if not isinstance(content, dict):
        raise FedstageError(f"{path}: must be a mapping of keys to values")
    return content


def _parse(text: str, path: Path) -> Any:
    """Return the content of YAML, in which each key stands once."""
    loader = _LOADER(text)
    try:
        root = loader.get_single_node()
        for key, other in _repeated(root):
            first, again = (node.start_mark.line + 1 for node in (other, key))
            raise FedstageError(
                f"{path}: line {again}: key {key.value!r} is also in line {first}, once is allowed"
            )
        return None if root is None else loader.construct_document(root)
    finally:
        loader.dispose()


def _repeated(root: yaml.Node | None) -> Iterator[tuple[yaml.Node, yaml.Node]]:
    """Yield each key that its mapping has already, and the first of the name."""
    waiting, seen = [root], set()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:  # an alias
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            waiting += node.value
        elif isinstance(node, yaml.MappingNode):
            first: dict[tuple[str, str], yaml.Node] = {}
            for key, value in node.value:
                name = (key.tag, str(key.value))
                if first.setdefault(name, key) is not key:
                    yield key, first[name]
                waiting.append(value)


def load_sealed_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML mapping that a stage sealed.

    Raises
    ------
    FedstageError
        If the file is missing, altered, or another one than that of this path.
    """
    try:
        return unsealed(load_yaml(path), path)
    except OSError as error:
        raise FedstageError(f"{path}: {error.strerror}") from None


def read_recipe(path: Path, kind: type[S]) -> S:
    """Read the settings that stage `recipe` wrote.

    Raises
    ------
    FedstageError
        If the file is missing, altered, that of another recipe, or of another schema.
    """
    content = load_sealed_yaml(path)
    if (found := content.get("schema")) != SCHEMA_VERSION:
        raise FedstageError(f"{path}: schema = {found!r}: this version reads {SCHEMA_VERSION}")
    settings = content.get("settings")
    if (stated := content.get("digest")) != digest(settings):
        raise FedstageError(f"{path}: digest = {stated!r}: altered; delete the file")
    return validate_restricted(kind, settings, str(path))
