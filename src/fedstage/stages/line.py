"""Stage `line`: the settings of a training line, as a file beside what they determine."""

import json
from pathlib import Path

from fedstage.plan.sharing import SCHEMA_VERSION, digest
from fedstage.storage.files import replacing


def line(*, settings: str, output: Path) -> None:
    """Write the canonical settings of a line, given as JSON, to a YAML file."""
    import yaml

    parsed = json.loads(settings)
    content = {"schema": SCHEMA_VERSION, "digest": digest(parsed), "settings": parsed}
    with replacing(output) as temporary:
        temporary.write_text(yaml.safe_dump(content, sort_keys=False))
