"""Reading YAML files, among them `line.yaml`: the settings of a line, beside its files."""

from pathlib import Path
from typing import Any, TypeVar

import yaml

from fedstage.errors import FedstageError
from fedstage.plan.digests import SCHEMA_VERSION, digest
from fedstage.settings.base import Settings
from fedstage.settings.validation import validate

S = TypeVar("S", bound=Settings)

#: libyaml's loader, ten times as fast, where PyYAML has it; both refuse Python objects.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def load_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML mapping; raise FedstageError if the file is missing or holds anything else."""
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER)
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


def read_line(path: Path, kind: type[S]) -> S:
    """Read the settings that stage `line` wrote; FedstageError if altered or of another schema."""
    try:
        content = load_yaml(path)
    except OSError as error:
        raise FedstageError(f"{path}: {error.strerror}") from None
    if (found := content.get("schema")) != SCHEMA_VERSION:
        raise FedstageError(f"{path}: schema = {found!r}: this version reads {SCHEMA_VERSION}")
    settings = content.get("settings")
    if (stated := content.get("digest")) != digest(settings):
        raise FedstageError(f"{path}: digest = {stated!r}: altered; delete the file")
    return validate(kind, settings, str(path))
