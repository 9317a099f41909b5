"""Reading YAML files."""

from pathlib import Path
from typing import Any

import yaml

from fedstage.errors import FedstageError

#: libyaml's, ten times as fast, where PyYAML was built with it; both refuse Python objects.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def load_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML file that holds a mapping.

    Raises
    ------
    FedstageError
        If the file is not valid YAML, or not a mapping.
    """
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
