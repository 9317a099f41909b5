"""Stage `recipe`: the settings of a recipe, in the folder of the files that they determine."""

import json
from pathlib import Path

from fedstage.plan.digests import SCHEMA_VERSION, digest
from fedstage.storage.files import save_text


def recipe(*, settings: str, output: Path) -> None:
    """Write the canonical settings of a recipe, given as JSON, to a YAML file."""
    import yaml

    parsed = json.loads(settings)
    content = {"schema": SCHEMA_VERSION, "digest": digest(parsed), "settings": parsed}
    save_text(output, yaml.safe_dump(content, sort_keys=False))
